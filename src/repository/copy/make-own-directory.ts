/**
 * Makes the sandbox's own git directory from the host's, by copying files. No process starts, and the time grows only with
 * the refs and the index. The copy is the sandbox's to write. It borrows the host's objects, which are mounted read-only.
 */
import {
  appendFileSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { itself, openForRemoval } from '../../base/beneath/beneath.ts'
import { directoryEntries } from '../../base/beneath/directory-entries.ts'
import { lookAt } from '../../base/beneath/look-at.ts'
import { tryOpenBeneath } from '../../base/beneath/open-beneath.ts'
import { removeInSteps } from '../../base/beneath/remove-tree.ts'
import { errnoOf } from '../../base/error.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import { syncedText } from '../sync/synced-file.ts'
import { bothFingerprints } from './fingerprint.ts'
import { foldRefs } from './fold-refs.ts'

const COPIED_DIRECTORIES = ['info', 'hooks', 'rebase-merge', 'rebase-apply', 'sequencer']
/** Logs that git needs to work: `stash` is a log, and `@{-1}` is one too. */
const COPIED_LOGS = ['HEAD', 'refs/stash']
/** Files of a git directory or of a worktree's record that git reads by name: HEAD, MERGE_HEAD, BISECT_LOG and so on. */
const COPIED_FILES =
  /^(?:[A-Z][A-Z_]+|index|sharedindex\.[0-9a-f]+|config|config\.worktree|shallow|description|gitdir|commondir|locked)$/
/** More files in one directory are not git's. */
const MAX_FILES = 2000
const MAX_REFS_BYTES = 1024 ** 3
/** For the sandbox's git: a monitor of the host's is not there, and packing pays only in the host's repository. */
export const OWN_KEYS = [
  'core.fsmonitor',
  'core.checkstat',
  'core.trustctime',
  'core.sharedrepository',
  'gc.auto',
  'maintenance.auto',
  'extensions.preciousobjects',
]
/**
 * A shared repository needs setgid directories, which no sandbox can make. `git gc` would drop objects that the host has now; the
 * user's git may drop them there, with the branch.
 */
const OWN_SETTINGS = `[core]
\tfsmonitor = false
\tsharedRepository = umask
[gc]
\tauto = 0
[maintenance]
\tauto = false
[extensions]
\tpreciousObjects = true
`
/** In a sandbox of root's, files have another owner than in the index. git would read every file to see that it is the same. */
const FOR_ROOT = '[core]\n\tcheckStat = minimal\n\ttrustctime = false\n'

/** `to` is on the host. `synced` gets the refs as they were copied. Submodules lie below, and each has its own file. */
export function makeOwnDirectory(git: GitDirectory, to: string, synced: string): void {
  const { path, lentAt, submodules } = git
  for (const dir of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags'])
    mkdirSync(`${to}/${dir}`, { recursive: true, mode: 0o700 })
  writeFileSync(`${to}/objects/info/alternates`, `${lentAt}/objects\n`)
  const { packed, files } = foldRefs(path, readIfThere(`${path}/packed-refs`) ?? Buffer.alloc(0))
  writeFileSync(`${to}/packed-refs`, packed)
  for (const [name, content] of files) {
    mkdirSync(dirname(`${to}/${name}`), { recursive: true, mode: 0o700 })
    writeFileSync(`${to}/${name}`, content)
  }
  const heads = new Map<string, string>()
  for (const record of ['.', ...listDirectories(`${path}/worktrees`).map(name => `worktrees/${name}`)]) {
    copyRecord(`${path}/${record}`, `${to}/${record}`)
    heads.set(record, readIfThere(`${to}/${record}/HEAD`)?.toString('utf8') ?? '')
  }
  mkdirSync(dirname(synced), { recursive: true, mode: 0o700 })
  // `OLD NEW NAME <MAIL> …`, oldest first.
  const log = readIfThere(`${to}/logs/refs/stash`)?.toString('latin1').split('\n') ?? []
  const stashes = log.flatMap(line => /^\S+ ([0-9a-f]+) /.exec(line)?.[1] ?? [])
  for (const submodule of submodules) addSubmodule(submodule, submodule.path.slice(path.length), to, synced)
  // With this file the directory is complete: a copy that was interrupted is made again.
  writeFileSync(`${synced}.new`, syncedText(heads, packed, stashes))
  renameSync(`${synced}.new`, synced)
}

/** `to` is the directory of its superproject, which may be hostile: through a link, pen would write elsewhere. */
export function addSubmodule(submodule: GitDirectory, below: string, to: string, synced: string): void {
  for (let end = below.indexOf('/', 1); end > 0; end = below.indexOf('/', end + 1))
    if (lookAt(`${to}${below.slice(0, end)}`)?.isDirectory() === false) return
  const [own, file] = [`${to}${below}`, syncedFile(synced, below)]
  makeOwnDirectory(submodule, own, file)
  writeFileSync(inStepFile(file), bothFingerprints(own, submodule.path))
}

/** The directory itself stays: a container may have been requested with it. Everything below it may be hostile. */
export function emptyEntry(entry: string): void {
  mkdirSync(`${entry}/dir`, { recursive: true, mode: 0o700 })
  removeBelow(`${entry}/dir`)
  removeBelow(entry, 'dir')
}

function removeBelow(path: string, except?: string): void {
  const fd = openForRemoval(path)
  if (fd === undefined) return
  try {
    // A listing may miss a name while others are removed.
    for (let isEmpty = false; !isEmpty; ) {
      isEmpty = true
      for (const { name } of directoryEntries(fd)) {
        if (name.toString() === except) continue
        isEmpty = false
        for (const _ of removeInSteps(fd, name));
      }
    }
  } finally {
    closeSync(fd)
  }
}

/** The file of a submodule, beside the one of its repository. By a hash: a path can be longer than a file name. */
export const syncedFile = (top: string, below: string): string =>
  below === '' ? top : `${top}-${new Bun.CryptoHasher('sha256').update(below).digest('hex')}`

/** Beside the synced file of a submodule. While its fingerprints are these, nothing is to sync. */
export const inStepFile = (synced: string): string => `${synced}.in-step`

/** What belongs to one worktree: HEAD, index, an unfinished operation. */
function copyRecord(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 })
  copyFiles(from, to, COPIED_FILES)
  const settings = `\n${OWN_SETTINGS}${isHostRoot() ? FOR_ROOT : ''}`
  // Through a link, pen would write into a file of the user's.
  for (const name of ['config', 'config.worktree'])
    if (lookAt(`${to}/${name}`)?.isFile()) {
      chmodSync(`${to}/${name}`, 0o600) // The user may have made it read-only.
      appendFileSync(`${to}/${name}`, settings)
    }
  copyLogs(from, to)
  for (const dir of COPIED_DIRECTORIES) copyTree(`${from}/${dir}`, `${to}/${dir}`, 2)
}

/** A link is copied as a link: what it names is for the sandbox to find, or not. */
function copyFiles(from: string, to: string, names: RegExp): void {
  let count = 0
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (!names.test(entry.name) || ++count > MAX_FILES) continue
    if (entry.isFile()) copyFile(`${from}/${entry.name}`, `${to}/${entry.name}`)
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(`${from}/${entry.name}`), `${to}/${entry.name}`)
  }
}

function copyLogs(from: string, to: string): void {
  const top = openSync(from, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    for (const log of COPIED_LOGS.map(name => `logs/${name}`)) {
      // No directory on the way may be a link: it may lead to files that the sandbox must not read.
      const parent = tryOpenBeneath(top, dirname(log))
      if (parent === undefined) continue
      const source = `${itself(parent)}/${basename(log)}`
      if (lookAt(source)?.isFile()) {
        mkdirSync(dirname(`${to}/${log}`), { recursive: true, mode: 0o700 })
        copyFile(source, `${to}/${log}`)
      }
      closeSync(parent)
    }
  } finally {
    closeSync(top)
  }
}

function copyTree(from: string, to: string, depth: number): void {
  if (lstatSync(from, { throwIfNoEntry: false })?.isDirectory() !== true) return
  mkdirSync(to, { recursive: true, mode: 0o700 })
  copyFiles(from, to, /^(?!.*\.(?:sample|lock)$)/)
  if (depth > 0)
    for (const name of listDirectories(from)) copyTree(`${from}/${name}`, `${to}/${name}`, depth - 1)
}

function listDirectories(dir: string): readonly string[] {
  if (lstatSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) return []
  try {
    return readdirSync(dir, { withFileTypes: true }).flatMap(entry =>
      entry.isDirectory() ? [entry.name] : [],
    )
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENOTDIR') throw error
    return []
  }
}

/**
 * git trusts a cached file state only when it is older than the index. So the copy of the index keeps its time, rounded down:
 * an older index makes git look at more files, never at fewer.
 */
function copyFile(from: string, to: string): void {
  let fd: number | undefined
  try {
    fd = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const stats = fstatSync(fd)
    if (!stats.isFile()) return
    copyFileSync(`/proc/self/fd/${fd}`, to, constants.COPYFILE_FICLONE)
    if (/index/.test(basename(from))) {
      const time = Math.floor(stats.mtimeMs / 1000)
      utimesSync(to, time, time)
    }
  } catch (error) {
    // git replaces its files by rename: one that is gone now has a successor with the next sync.
    if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ELOOP') throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** A link may lead to a file that the sandbox must not read, and a pipe would block pen. */
const readIfThere = (path: string): Buffer | undefined =>
  lstatSync(path, { throwIfNoEntry: false })?.isFile() === true
    ? readRegularFile(path, { maxBytes: MAX_REFS_BYTES })
    : undefined
