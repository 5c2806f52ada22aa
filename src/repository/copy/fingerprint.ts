/**
 * A cheap answer to the question whether refs, HEAD or index of a repository changed since the last look. It only compares
 * times and inodes, so it may be asked twice a second, also of a hostile directory.
 */
import { lstatSync, readdirSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'

const FILES = [
  'config',
  'config.worktree',
  'hooks',
  'info',
  'HEAD',
  'packed-refs',
  'index',
  // HEAD and index wait while it is there, and git may remove it without a change.
  'index.lock',
  'logs/HEAD',
  'logs/refs/stash',
  'refs/stash',
  'MERGE_HEAD',
  'rebase-merge',
  'rebase-apply',
  'BISECT_LOG',
  // One that was made inside: the host never has its HEAD.
  'worktrees',
]
/** A repository with more loose refs is looked at in part. The end of the run looks at all of it. */
const MAX_DIRECTORIES = 200
const MAX_REFS = 500

/** Stands in a fingerprint that leaves directories out. */
export const IN_PART = '…'

/** `records` are its worktrees and submodules below `dir`; `.` is the repository itself. */
function fingerprint(dir: string, records: readonly string[], names = FILES): string {
  const parts: string[] = []
  let left = MAX_DIRECTORIES
  let refsLeft = MAX_REFS
  const walk = (path: string): void => {
    if (left-- <= 0) return
    parts.push(look(path))
    const { directories, files } = namesIn(path)
    // git makes a new file for each value. Other tools write into the file, and the directory does not change.
    for (const name of files) if (refsLeft-- > 0) parts.push(look(`${path}/${name}`))
    for (const name of directories) walk(`${path}/${name}`)
  }
  for (const record of records) {
    for (const file of names) parts.push(look(`${dir}/${record}/${file}`))
    if (record.startsWith('worktrees/')) continue
    // Not `refs` itself, and not pen's own refs in it.
    for (const name of namesIn(`${dir}/${record}/refs`).directories)
      if (name !== 'pen') walk(`${dir}/${record}/refs/${name}`)
  }
  if (left < 0 || refsLeft < 0) parts.push(IN_PART)
  return parts.join(' ')
}

/** Of the sandbox's directory and of the host's. */
export const bothFingerprints = (own: string, theirs: string, records: readonly string[] = ['.']): string =>
  `${fingerprint(own, records)}\n${fingerprint(theirs, records)}`

/** Without the index, which `git status` writes again. */
export const fingerprintOfRefs = (dir: string, records: readonly string[]): string =>
  fingerprint(
    dir,
    records,
    FILES.filter(name => !name.startsWith('index')),
  )

function look(path: string): string {
  try {
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stats === undefined ? '-' : `${stats.ino}.${stats.ctimeNs}`
  } catch (error) {
    return errnoOf(error) ?? '-'
  }
}

/** A link is not followed. */
function namesIn(path: string): {
  readonly directories: readonly string[]
  readonly files: readonly string[]
} {
  const [directories, files]: [string[], string[]] = [[], []]
  try {
    if (lstatSync(path).isDirectory())
      for (const entry of readdirSync(path, { withFileTypes: true }))
        (entry.isDirectory() ? directories : files).push(entry.name)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
  }
  // One more than the walk looks at, so that it knows.
  return { directories: directories.slice(0, MAX_DIRECTORIES + 1), files: files.slice(0, MAX_REFS + 1) }
}
