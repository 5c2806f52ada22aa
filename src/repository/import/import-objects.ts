/**
 * Brings objects from the sandbox's repository into the host's. They go to a scratch repository first, where git and pen
 * check them in a box that has the host's objects read-only. Only then does the host's git write them.
 */
import { closeSync, fstatSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { type BoxWorld, runInBox } from '../../backend/box.ts'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { PenError } from '../../base/error.ts'
import { pipe } from '../../base/kernel/descriptor.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import { borrowed } from '../../plan/git-steps.ts'
import type { Step } from '../../plan/plan.ts'
import type { GuestPath, HostPath } from '../../policy/files/path.ts'
import { OBJECT_ID } from '../copy/fold-refs.ts'
import { BOX_PATH, type GitBox } from '../git/git-box.ts'
import { GIT_ENVIRONMENT } from '../git/git-environment.ts'
import { type GitCall, runGit } from '../git/git-runner.ts'
import type { HostGit } from '../git/host-git.ts'
import type { Budget } from '../sync/budget.ts'
import { checkGitmodules, checkTrees, parseBatch, type Tree } from './check-objects.ts'

/** A pack of 16 KB can hold an object of 4 GiB. */
const MAX_OBJECT_BYTES = 1024 ** 3
const MAX_ALL_BYTES = 4 * 1024 ** 3
/** Commits and tags are text that people write. */
const MAX_TEXT_BYTES = 1024 ** 2
const MAX_OBJECTS = 500_000
/** Up to this many become loose objects, so that the host's git does not repack after fifty small imports. */
const MAX_LOOSE = 100

/** Without what is borrowed from the host. A clone inside may borrow from another repository: the host needs all of that. */
const PACK = `[ "$(cat "$GIT_DIR/objects/info/alternates")" = "$1" ] && local=--local || local=
git pack-objects --revs $local --thin --stdout --quiet`
/** Processor seconds, and the size of a file in blocks of 512 bytes. */
const BOUNDED = 'ulimit -t 60; ulimit -f 4194304'
/**
 * Harmless faults in the history of old projects. A fetch inside brings them along. A partial clone lacks
 * objects that `--strict` looks for.
 */
const TOLERATED = 'badTimezone=ignore,missingSpaceBeforeDate=ignore,badDateOverflow=ignore'
/** Stands in `/scratch`. The objects that the host has already are left out of the list: the first step may copy some. */
const CHECK = `${BOUNDED}
git index-pack --stdin --fix-thin $1 --max-input-size=2147483648 --threads=1 objects/pack/in.pack >/dev/null </dev/stdin || exit 3
exec </tips
git rev-list --objects --quiet --ignore-missing $2 --stdin || exit 4
git show-index <objects/pack/in.idx | cut -d ' ' -f 2 >/tmp/ids
GIT_OBJECT_DIRECTORY=$3 git cat-file --batch-check --buffer </tmp/ids | sed -n 's/ missing$//p' >/tmp/new
git cat-file --batch-check='%(objectname) %(objecttype) %(objectsize)' --buffer </tmp/new`
const READ = `${BOUNDED}; git cat-file --batch --buffer`
/**
 * On a full disk git leaves half a pack. So it writes to a directory that is removed in any case, now or by the next try; its
 * name is one that `git prune` removes as well. Then files are renamed, a pack before its index.
 */
const WRITE = `cd "$GIT_DIR/objects" && new=tmp_objdir-pen-$1 && rm -rf "$new" && mkdir -p "$new/info" "$new/pack" || exit
(
  echo .. >"$new/info/alternates" && export GIT_OBJECT_DIRECTORY="$PWD/$new" || exit
  if [ "$2" = loose ]; then git unpack-objects -q; else git index-pack --stdin >/dev/null; fi || exit
  for dir in "$new"/??; do
    [ -d "$dir" ] || continue
    if [ -d "\${dir##*/}" ]; then mv -f "$dir"/* "\${dir##*/}/"; else mv -T "$dir" "\${dir##*/}"; fi || exit
  done
  for end in pack rev idx; do
    for file in "$new"/pack/*.$end; do [ ! -e "$file" ] || mv -f "$file" pack/ || exit; done
  done
)
code=$?
[ $code = 0 ] || [ "$(stat -f -c %a . || echo 1000)" -gt 256 ] || echo "no space left on the disk of $PWD" >&2
rm -rf "$new"; exit $code`

export interface ImportOptions {
  readonly world: BoxWorld
  readonly box: GitBox
  readonly host: HostGit
  /** A submodule's directory below the repository. */
  readonly gitDir: string | undefined
  /** The host's git directory, whose objects are lent to the box. */
  readonly directory: GitDirectory
  /** The repository lacks objects on purpose. */
  readonly isPartial: boolean
  readonly budget: Budget
  /** Made and removed here. Outside every mount. */
  readonly scratch: string
}

/** What is wrong with the objects. The sandbox's repository keeps them. */
export class ImportRefused extends PenError {
  readonly why: string

  constructor(why: string) {
    super('STATE', {
      what: `commits of the sandbox were not taken over: ${why}`,
      hint: 'they are still in the sandbox: pen git status',
    })
    this.why = why
  }
}

/** `tips` are the objects that the host lacks. `known` are commits that both repositories have. */
export async function importObjects(
  options: ImportOptions,
  tips: readonly string[],
  known: readonly string[],
): Promise<void> {
  if (tips.length === 0) return
  const { scratch, host } = options
  removeTree(scratch)
  makeScratch(options, tips, known)
  try {
    const objects = await receive(options, tips, known)
    await check(options, objects)
    const fd = openSync(`${scratch}/objects/pack/in.pack`, 'r')
    try {
      spend(options, { objects: objects.length, bytes: fstatSync(fd).size })
      await runGit(host.run, {
        script: WRITE,
        args: [basename(dirname(scratch)), objects.length <= MAX_LOOSE ? 'loose' : 'pack'],
        inputFrom: fd,
        ...at(options),
      })
    } finally {
      closeSync(fd)
    }
  } finally {
    removeTree(scratch)
  }
}

export function spend({ budget }: ImportOptions, what: Parameters<Budget['spend']>[0]): void {
  const why = budget.spend(what)
  if (why !== undefined) throw new ImportRefused(why)
}

/** A repository that pen writes itself: no setting of the host's takes part in reading hostile objects. */
function makeScratch(
  { scratch, directory, isPartial }: ImportOptions,
  tips: readonly string[],
  known: readonly string[],
): void {
  for (const dir of ['objects/info', 'objects/pack', 'refs'])
    mkdirSync(`${scratch}/${dir}`, { recursive: true, mode: 0o700 })
  const format = (tips[0] ?? '').length === 64 ? 'sha256' : 'sha1'
  const partial = isPartial ? '\tpartialClone = none\n' : ''
  writeFileSync(`${scratch}/HEAD`, 'ref: refs/heads/none\n')
  writeFileSync(
    `${scratch}/config`,
    `[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = ${format}\n${partial}`,
  )
  writeFileSync(`${scratch}/objects/info/alternates`, `${directory.lentAt}/objects\n`)
  writeFileSync(
    `${scratch}/shallow`,
    shallowCommits(directory)
      .map(id => `${id}\n`)
      .join(''),
  )
  writeFileSync(`${scratch}/tips`, [...tips, ...known.map(id => `^${id}`)].map(line => `${line}\n`).join(''))
}

/** Where the host's history ends. A sandbox may have fetched what comes before: the host has none of it. */
function shallowCommits({ path }: GitDirectory): readonly string[] {
  const bytes = readRegularFile(`${path}/shallow`, { maxBytes: MAX_TEXT_BYTES })
  return bytes === undefined
    ? []
    : bytes
        .toString('latin1')
        .split('\n')
        .filter(line => OBJECT_ID.test(line))
}

interface Listed {
  readonly id: string
  readonly type: string
  readonly size: number
}

/** The pack goes from one box to the other. Returns the objects that the host does not have. */
async function receive(
  options: ImportOptions,
  tips: readonly string[],
  known: readonly string[],
): Promise<readonly Listed[]> {
  const [read, write] = pipe()
  const lent = `${options.directory.lentAt}/objects`
  const shallow = shallowCommits(options.directory).map(id => `--shallow ${id}`)
  const input = [...shallow, ...tips, ...known.map(id => `^${id}`)].map(line => `${line}\n`).join('')
  const partial = options.isPartial ? '--exclude-promisor-objects' : ''
  const strict = options.isPartial ? '--fsck-objects' : `--strict=${TOLERATED}`
  const sending = options.box
    .run({ script: PACK, args: [lent], input, outputTo: write, ...at(options) })
    .finally(() => closeSync(write))
  const checking = inScratch(options, CHECK, read, [strict, partial, lent]).finally(() => closeSync(read))
  const [sent, checked] = await Promise.all([sending, checking])
  if (sent.code !== 0) throw new ImportRefused(`git could not pack them (${lastLine(sent.stderr)})`)
  if (checked.code !== 0)
    throw new ImportRefused(
      `${checked.code === 4 ? 'objects are missing' : 'git refused them'} (${lastLine(checked.stderr)})`,
    )
  const lines = checked.stdout.toString('latin1').split('\n').slice(0, -1)
  return lines.map(line => {
    const [id = '', type = '', size = ''] = line.split(' ')
    return { id, type, size: Number(size) }
  })
}

/** Sizes, trees and `.gitmodules`, by pen itself. */
async function check(options: ImportOptions, objects: readonly Listed[]): Promise<void> {
  if (objects.length > MAX_OBJECTS)
    throw new ImportRefused(`they are ${objects.length} objects, and pen takes ${MAX_OBJECTS}`)
  let bytes = 0
  for (const { id, type, size } of objects) {
    const most = type === 'commit' || type === 'tag' ? MAX_TEXT_BYTES : MAX_OBJECT_BYTES
    if (!(size <= most)) throw new ImportRefused(`${type} ${id} has ${size} bytes, and pen takes ${most}`)
    bytes += size
  }
  if (bytes > MAX_ALL_BYTES)
    throw new ImportRefused(`they have ${bytes} bytes, and pen takes ${MAX_ALL_BYTES}`)
  const trees = new Map<string, Tree>()
  for (const { id, body } of await readObjects(
    options,
    objects.flatMap(({ id, type }) => (type === 'tree' ? [id] : [])),
  ))
    trees.set(id, { body, idLength: id.length / 2 })
  const { refused, gitmodules } = checkTrees(trees)
  if (refused !== undefined) throw new ImportRefused(refused)
  for (const { id, body } of await readObjects(options, gitmodules)) {
    const why = checkGitmodules(body.toString('utf8'))
    if (why !== undefined) throw new ImportRefused(`${id}: ${why}`)
  }
}

async function readObjects(
  options: ImportOptions,
  ids: readonly string[],
): Promise<readonly { id: string; body: Buffer }[]> {
  if (ids.length === 0) return []
  const { code, stdout, stderr } = await inScratch(options, READ, Buffer.from(`${ids.join('\n')}\n`), [])
  if (code !== 0) throw new ImportRefused(`they could not be read (${lastLine(stderr)})`)
  return parseBatch(stdout)
}

function inScratch(
  { world, scratch, directory }: ImportOptions,
  script: string,
  input: number | Buffer,
  args: readonly string[],
) {
  const bind = (from: string, at: string, mode: 'ro' | 'rw'): Step => ({
    op: 'bind',
    from: from as HostPath,
    at: at as GuestPath,
    mode,
    why: 'git',
  })
  return runInBox(world, {
    argv: ['/bin/sh', '-c', `cd /scratch && ${script}`, 'pen', ...args],
    env: { ...GIT_ENVIRONMENT, PATH: BOX_PATH, HOME: '/tmp', GIT_DIR: '/scratch' },
    steps: [bind(scratch, '/scratch', 'rw'), bind(`${scratch}/tips`, '/tips', 'ro'), ...borrowed(directory)],
    input,
  })
}

const at = ({ gitDir }: ImportOptions): Pick<GitCall, 'gitDir'> => (gitDir === undefined ? {} : { gitDir })

const lastLine = (text: string): string => printable(text.trim().split('\n').at(-1) ?? '', 200)
