/**
 * Makes a commit of chosen changes on a new branch of the host's repository. The working tree, the index and HEAD stay. The
 * content goes to git as data, in the format of `git fast-import`: no filter, hook or attribute is applied.
 */
import { closeSync, constants, openSync, unlinkSync } from 'node:fs'
import { PenError } from '../base/error.ts'
import { writeAll } from '../base/write-all.ts'
import { type GitRunner, recordAt, runGit } from '../repository/git/git-runner.ts'
import { pathText } from '../repository/sync/changed-paths.ts'
import { parseGitConfig } from '../survey/git/config.ts'
import { type Change, isBelow } from './change.ts'
import { digestContent } from './digest.ts'
import { type Entry, unlocked, withFile } from './entry.ts'
import { type HostRepository, trackedIn } from './host-repository.ts'
import type { OpenDirectories } from './open-directories.ts'

export interface CommitOptions {
  readonly git: GitRunner
  readonly repository: HostRepository
  readonly message: string
  readonly branch: string
  /** Settings of git with the user's name. */
  readonly identity: string | undefined
  readonly directories: OpenDirectories
  /** A directory of pen's for the stream. */
  readonly scratch: string
}

/** Larger files do not belong into a commit. */
const LARGEST = 256 * 2 ** 20
const HEAD = 'git rev-parse -q --verify "HEAD^{commit}" || true'
const IS_NEW =
  'git check-ref-format "refs/heads/$1" && ! git rev-parse -q --verify "refs/heads/$1" >/dev/null'
const IDENT = 'git -c user.useConfigOnly=true var GIT_AUTHOR_IDENT 2>/dev/null || true'
const IMPORT = 'git fast-import --quiet --done --date-format=now && git rev-parse "refs/heads/$1"'

/** As `git add` does: what git ignores is taken only by its name. */
export const withoutIgnored = (changes: readonly Change[], named: readonly string[]): readonly Change[] =>
  changes.filter(
    ({ path, ignored }) =>
      ignored === undefined || named.some(name => isBelow(name, ignored) && isBelow(path, name)),
  )

/** Returns the id of the commit. */
export async function commitChanges(changes: readonly Change[], options: CommitOptions): Promise<string> {
  const { git, repository, branch, scratch } = options
  if ((await git({ script: IS_NEW, args: [branch] })).code !== 0)
    throw new PenError('USAGE', {
      what: `the branch exists already, or git does not allow its name`,
      at: branch,
      hint: 'name another one: --branch NAME',
    })
  const { modules } = await trackedIn(git, repository)
  const inside = changes.find(({ path }) => modules.some(module => isBelow(path, module)))
  if (inside !== undefined) throw inModule(inside.path)
  const head = (await runGit(git, { script: HEAD, ...recordAt({}, repository.record) })).toString().trim()
  const who = await author(options)
  const file = `${scratch}/import-${crypto.randomUUID()}`
  const { O_RDWR, O_CREAT, O_EXCL } = constants
  const writer = openSync(file, O_RDWR | O_CREAT | O_EXCL, 0o600)
  const reader = openSync(file, constants.O_RDONLY)
  unlinkSync(file)
  try {
    const message = Buffer.from(options.message)
    writeAll(writer, `commit refs/heads/${branch}\ncommitter ${who} now\ndata ${message.length}\n`)
    writeAll(writer, message)
    writeAll(writer, head === '' ? '\n' : `\nfrom ${head}\n`)
    for (const { path, before } of changes)
      if (before !== undefined && before.type !== 'directory') writeAll(writer, removal(path))
    for (const change of changes) writeChange(writer, change, options.directories)
    writeAll(writer, 'done\n')
    return (await runGit(git, { script: IMPORT, args: [branch], inputFrom: reader })).toString().trim()
  } finally {
    closeSync(writer)
    closeSync(reader)
  }
}

const removal = (path: string): Buffer => Buffer.from(`D ${quoted(path)}\n`, 'latin1')

/** Every byte that is not plain, as git's own quoting has it. */
const quoted = (path: string): string =>
  `"${path.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, c => `\\${c.charCodeAt(0).toString(8).padStart(3, '0')}`)}"`

function writeChange(fd: number, change: Change, directories: OpenDirectories): void {
  const { path, after, merged } = change
  if (after === undefined || after.type === 'directory') return
  const mode = after.type === 'link' ? '120000' : (after.mode & 0o100) === 0 ? '100644' : '100755'
  const begin = (size: number): void =>
    writeAll(fd, Buffer.from(`M ${mode} inline ${quoted(path)}\ndata ${size}\n`, 'latin1'))
  const bytes = merged ?? (after.type === 'link' ? Buffer.from(after.content ?? '', 'latin1') : undefined)
  if (bytes !== undefined) {
    begin(bytes.length)
    writeAll(fd, bytes)
  } else copyFile(fd, path, after, directories, begin)
  writeAll(fd, '\n')
}

/** Holes become zeros. What the sandbox changed meanwhile ends the import, which then leaves nothing. */
function copyFile(
  fd: number,
  path: string,
  after: Entry,
  directories: OpenDirectories,
  begin: (size: number) => void,
): void {
  if (after.size > LARGEST) throw tooLarge(path)
  const { layer, name } = directories.find(path)
  if (layer === undefined) throw changed(path)
  const digest = unlocked(layer, name, () =>
    withFile(layer, name, from => {
      begin(after.size)
      let written = 0
      const fill = (to: number): void => {
        for (; written < to; written += Math.min(ZEROS.length, to - written))
          writeAll(fd, ZEROS.subarray(0, Math.min(ZEROS.length, to - written)))
      }
      const found = digestContent(from, after.size, (bytes, offset) => {
        fill(offset)
        writeAll(fd, bytes)
        written += bytes.length
      })
      fill(after.size)
      return found
    }),
  )
  if (digest !== after.content) throw changed(path)
}

const ZEROS = Buffer.alloc(64 * 1024)

const changed = (path: string): PenError =>
  new PenError('STATE', {
    what: 'the sandbox changed a file after it was listed; nothing was committed',
    at: pathText(path),
    hint: 'pen diff, then try again',
  })

const inModule = (path: string): PenError =>
  new PenError('STATE', {
    what: 'a file is in a submodule, whose commits are its own; nothing was committed',
    at: pathText(path),
    hint: 'name the paths to commit, without it',
  })

const tooLarge = (path: string): PenError =>
  new PenError('STATE', {
    what: 'a file is too large for a commit; nothing was committed',
    at: pathText(path),
    hint: 'name the paths to commit, without it',
  })

/** As the repository, or the user's settings, name the user. */
async function author({ git, identity }: CommitOptions): Promise<string> {
  const known = (await git({ script: IDENT })).stdout.toString().trim()
  const [, own] = /^(.*<[^<>\n]*>) \d+ [+-]\d+$/.exec(known) ?? []
  if (own !== undefined) return own
  const settings = new Map((parseGitConfig(identity ?? '') ?? []).map(({ key, value }) => [key, value]))
  const plain = (key: string, otherwise: string): string =>
    (settings.get(key) ?? otherwise).replace(/[<>\0\n]/g, '')
  return `${plain('user.name', 'pen')} <${plain('user.email', 'pen@localhost')}>`
}
