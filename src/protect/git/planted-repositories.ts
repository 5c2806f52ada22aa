/**
 * Searches repositories below the workspace root when a run ends. The host's git obeys the settings and hooks of the
 * repository it is called in. Nested ones cannot be forbidden, because `git clone` must work inside. So they are reported.
 */
import { readdirSync, statfsSync } from 'node:fs'
import { absent, lookAt, Unseen } from '../../base/beneath/look-at.ts'
import { PenError } from '../../base/error.ts'
import { printable, shellWord } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { riskySettings } from '../../survey/git/config.ts'
import { looksLikeGitDir, readGitConfig, readGitFile, readPointer } from '../../survey/git/directory.ts'
import { NO_TEXT, NonUtf8Directories } from '../../survey/non-utf8-directories.ts'

export interface FoundRepository {
  /** The working tree. */
  readonly path: string
  readonly form: 'directory' | 'pointer' | 'link' | 'bare'
  /** Made or replaced since the run began. */
  readonly planted: boolean
  /** Why the host's git could run something in it: settings and hooks. Empty for a plain clone. Hostile text. */
  readonly risks: readonly string[]
  /** Its git directory, when it borrows objects by a path that only the sandbox has. `git clone` of a local path copies that. */
  readonly borrower?: string
}

export interface Search {
  readonly found: readonly FoundRepository[]
  /** False when time or count ran out before all directories were seen, or when pen could not look into one. */
  readonly complete: boolean
  /** How many harmless new ones are not listed. */
  readonly unlisted: number
}

export interface SearchLimits {
  readonly deadlineMs: number
  /** CPU time; `deadlineMs` by default. */
  readonly processorMs?: number
  readonly maxDirs?: number
  /** Start of the run, milliseconds since the epoch. */
  readonly since: number
  readonly now?: () => number
}

/** Separate limits for dangerous and harmless ones, so that many harmless ones cannot hide a dangerous one. */
const MAX_FOUND = 100
/** How many reasons are named per repository. */
const MAX_RISKS = 20
/** File system timestamps are coarser than our clock. */
const SLACK_MS = 20
const MAX_ALTERNATES = 64 * 1024

/** For a command that ended by itself, and for a sandbox whose end `pen stop` waits for. */
const MOST_MS = { command: 2000, kept: 500 }
/** Enough for some thousand directories. */
const LEAST_MS = 20

/**
 * A tenth of the run's time, so that the user never waits for it. That is CPU time: on a busy machine the search may take as
 * long as the run, because a search that ends early misses repositories.
 */
export function searchBudget(
  runMs: number,
  of: keyof typeof MOST_MS = 'command',
): Required<Pick<SearchLimits, 'deadlineMs' | 'processorMs'>> {
  const within = (ms: number): number => Math.min(MOST_MS[of], Math.max(LEAST_MS, ms))
  return { deadlineMs: within(runMs), processorMs: within(runMs / 10) }
}

function processorTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

export function findRepositories(workspace: string, limits: SearchLimits): Search {
  const { deadlineMs, processorMs = deadlineMs, maxDirs = 100_000, since } = limits
  const { now = () => performance.now() } = limits
  const [end, worked] = [now() + deadlineMs, processorTime() + processorMs]
  const found: FoundRepository[] = []
  const queue = [workspace]
  const counted = deviceThatCounts(workspace)
  const nameless = new NonUtf8Directories()
  const count = { risky: 0, planted: 0, old: 0 }
  let complete = true
  const seen = <T>(dir: string, look: () => T): T | undefined => {
    try {
      return look()
    } catch (error) {
      if (!(error instanceof Unseen)) throw error
      if (!wasLockedBefore(dir, error, since)) complete = false
      return undefined
    }
  }
  const result = (): Search => ({
    found,
    complete: complete && nameless.complete,
    unlisted: Math.max(0, count.planted - MAX_FOUND),
  })
  try {
    for (let i = 0; i < queue.length; i++) {
      const dir: string | undefined = queue[i]
      if (dir === undefined) break
      if (i >= maxDirs || count.risky >= MAX_FOUND || now() >= end || processorTime() >= worked)
        return { ...result(), complete: false }
      const isRoot = dir === workspace
      const here = seen(dir, () => (isRoot ? rootRepository(dir, since) : repositoryAt(dir, since)))
      if (here !== undefined) {
        const kind = here.risks.length > 0 ? 'risky' : here.planted ? 'planted' : 'old'
        if (count[kind]++ < MAX_FOUND) found.push({ ...here, path: nameless.shown(dir) })
      }
      if (here?.form === 'bare') continue
      for (const child of seen(dir, () => subdirectories(dir, counted)) ?? [])
        if (child.includes(NO_TEXT)) queue.push(...nameless.open(dir))
        else queue.push(`${dir}/${child}`)
    }
    return result()
  } finally {
    nameless.close()
  }
}

/** A directory that was locked before the run: nothing was made in it, because unlocking would change its change time. */
function wasLockedBefore(dir: string, { errno }: Unseen, since: number): boolean {
  try {
    return errno === 'EACCES' && !isNew(dir, since)
  } catch (error) {
    if (error instanceof Unseen) return false
    throw error
  }
}

// The root's own `.git` is protected and watched. Only a new bare repository at the root is reported.
function rootRepository(dir: string, since: number): FoundRepository | undefined {
  if (lookAt(`${dir}/.git`) !== undefined || !looksLikeGitDir(dir)) return undefined
  return {
    path: dir,
    form: 'bare',
    planted: isNew(`${dir}/HEAD`, since),
    risks: risksOf(dir),
  }
}

/** For an incomplete search, with a command that completes it. */
export const searchUnfinished = (sinceMs: number): string =>
  `not all directories were searched for repositories made during the run; to see them: find . -mindepth 2 -name .git -cmin -${Math.ceil((Date.now() - sinceMs) / 60_000) + 1}`

/** One line for the user; undefined when there is nothing to report. */
export function describeRepository(found: FoundRepository): string | undefined {
  const { path, planted, risks, borrower } = found
  if (!planted && risks.length === 0) return undefined
  const what = planted ? 'a repository was made or changed during the run' : 'a nested repository'
  const where = `${what} at ${printable(path, 1024)}${borrower === undefined ? '' : borrows(path, borrower)}`
  if (risks.length === 0) return where
  const obeyed = risks.map(risk => printable(risk, 120)).join(', ')
  return `${where}: git on the host would obey ${obeyed}`
}

function borrows(path: string, gitDir: string): string {
  const [place, file] = [path, `${gitDir}/objects/info/alternates`].map(name => shellWord(name))
  const fix =
    place === undefined || file === undefined
      ? 'clone it with --no-local'
      : `pen run -- git -C ${place} repack -adq && pen run -- rm ${file}`
  return ` that lacks objects on the host, because it borrows them in the sandbox (fix: ${fix})`
}

/** Undefined also when pen cannot read the file. The paths in it are the sandbox's. */
function borrower(gitDir: string): Pick<FoundRepository, 'borrower'> {
  try {
    const text = readRegularFile(`${gitDir}/objects/info/alternates`, { maxBytes: MAX_ALTERNATES })
    return text?.includes('/run/pen-git/') ? { borrower: gitDir } : {}
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return {}
  }
}

function repositoryAt(dir: string, since: number): FoundRepository | undefined {
  const dotGit = `${dir}/.git`
  const stats = lookAt(dotGit)
  if (stats === undefined) {
    if (lookAt(`${dir}/HEAD`) === undefined || !looksLikeGitDir(dir)) return undefined
    return {
      path: dir,
      form: 'bare',
      planted: isNew(`${dir}/HEAD`, since),
      risks: risksOf(dir),
      ...borrower(dir),
    }
  }
  if (stats.isDirectory()) {
    const planted =
      isNew(`${dotGit}/HEAD`, since) || isNew(`${dotGit}/config`, since) || isNew(`${dotGit}/hooks`, since)
    return { path: dir, form: 'directory', planted, risks: risksOf(dotGit), ...borrower(dotGit) }
  }
  const planted = isNew(dotGit, since)
  if (stats.isSymbolicLink()) return { path: dir, form: 'link', planted, risks: ['its .git is a link'] }
  const target = readGitFile(dotGit)
  const common = target === undefined ? undefined : commonOf(target)
  return {
    path: dir,
    form: 'pointer',
    planted,
    risks: common === undefined ? ['its .git file is unreadable'] : risksOf(common),
  }
}

/** Where git looks for settings and hooks: what the file says, which the sandbox may have written. */
const commonOf = (gitDir: string): string => readPointer(`${gitDir}/commondir`) ?? gitDir

function risksOf(gitDir: string): readonly string[] {
  const risks: string[] = []
  for (const file of ['config', 'config.worktree']) {
    if (lookAt(`${gitDir}/${file}`) === undefined) continue
    const settings = readGitConfig(`${gitDir}/${file}`)
    if (settings === undefined) risks.push(`${file} is unreadable`)
    else risks.push(...riskySettings(settings).filter(s => !ORDINARY.test(s)))
  }
  if (lookAt(`${gitDir}/commondir`) !== undefined) risks.push('commondir')
  for (const name of list(`${gitDir}/hooks`)) if (!name.endsWith('.sample')) risks.push(`hooks/${name}`)
  const more = risks.length - MAX_RISKS
  return more <= 0 ? risks : [...risks.slice(0, MAX_RISKS), `… and ${more} more`]
}

/** A submodule names its working tree, and a clone of a local directory names that directory. Neither runs a program. */
const ORDINARY = /^(?:core\.worktree|remote\..*\.(?:push)?url)=(?![^/]*::)/

function isNew(path: string, since: number): boolean {
  const stats = lookAt(path)
  // The change time cannot be set from inside, unlike the modification time.
  return stats !== undefined && Number(stats.ctimeNs / 1_000_000n) >= since - SLACK_MS
}

/** The device, when its file system counts one link per subdirectory: ext4, xfs, tmpfs. Others (btrfs, FUSE) tell nothing. */
function deviceThatCounts(workspace: string): bigint | undefined {
  const counts = [0xef53, 0x58465342, 0x01021994].includes(statfsSync(workspace).type)
  return counts ? lookAt(workspace)?.dev : undefined
}

/**
 * Without `.git` and links. When the link count shows that there is no subdirectory, nothing is listed. A directory that is
 * too deep for a path, or locked, counts as unseen: git at the top does not reach it, but `cd` does.
 */
function subdirectories(dir: string, counted: bigint | undefined): readonly string[] {
  const stats = lookAt(dir)
  if (stats === undefined || !stats.isDirectory() || (stats.nlink === 2n && stats.dev === counted)) return []
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter(entry => entry.isDirectory() && entry.name !== '.git')
      .map(entry => entry.name)
  } catch (error) {
    return absent(error, dir) ?? []
  }
}

function list(dir: string): readonly string[] {
  try {
    return lookAt(dir)?.isDirectory() ? readdirSync(dir) : []
  } catch (error) {
    return absent(error, dir) ?? []
  }
}
