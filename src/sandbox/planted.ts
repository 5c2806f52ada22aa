/**
 * Repositories below the workspace root, looked for when a run ends. The host's git obeys the settings and hooks of
 * whichever repository it is called in, and `git status` at the root enters nested ones that the index lists. They
 * cannot be forbidden (`git clone` works inside), so they are told.
 */
import { readdirSync, statfsSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { resolve } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'
import { riskySettings } from './git-config.ts'
import { looksLikeGitDir, readGitConfig, readGitFile, readPointer } from './git-dir.ts'
import { changedGitlinks } from './gitlinks.ts'
import { NamelessDirectories, NO_TEXT } from './nameless-directories.ts'
import { lstatOrUndefined } from './places.ts'

export interface FoundRepository {
  /** The directory that git would be called in. */
  readonly path: string
  readonly form: 'directory' | 'pointer' | 'link' | 'bare'
  /** Made or replaced since the run began. */
  readonly planted: boolean
  /** The index at the top was changed and lists it: there, a plain `git status` enters it. */
  readonly entered: boolean
  /** Why the host's git could run something in it: settings and hooks. Empty for a plain clone. Hostile text. */
  readonly risks: readonly string[]
}

export interface Search {
  readonly found: readonly FoundRepository[]
  /** False when time or count ran out before all directories were seen. */
  readonly complete: boolean
  /** False when the index changed and cannot be read: it may list repositories that are not found. */
  readonly indexRead: boolean
}

export interface SearchLimits {
  readonly deadlineMs: number
  /** Of the processor; the same, if nothing is said. */
  readonly processorMs?: number
  readonly maxDirs?: number
  /** Start of the run, milliseconds since the epoch. */
  readonly since: number
  readonly now?: () => number
}

/** Of those that could run something, and of the others: however many plain ones are made, they hide none. */
const MAX_FOUND = 100
/** Clocks of file systems tick more coarsely than ours. */
const SLACK_MS = 20

/**
 * A tenth of the run, so that it is never what a user waits for. That much work it is allowed: on a busy machine it takes longer, up to
 * as long as the run, because what a search misses is not told.
 */
export function searchBudget(runMs: number): Required<Pick<SearchLimits, 'deadlineMs' | 'processorMs'>> {
  const within = (ms: number): number => Math.min(2000, Math.max(1, ms))
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
  // Whatever the time: these are the ones that a plain `git status` at the top obeys.
  const links = enteredRepositories(workspace, since)
  const found: FoundRepository[] = [...links.found]
  const entered = new Set(links.found.map(({ path }) => path))
  const queue = [workspace]
  const counted = deviceThatCounts(workspace)
  const nameless = new NamelessDirectories()
  const count = { risky: 0, plain: 0 }
  let complete = true
  try {
    for (let i = 0; i < queue.length; i++) {
      const dir: string | undefined = queue[i]
      if (dir === undefined) break
      if (i >= maxDirs || count.risky >= MAX_FOUND || now() >= end || processorTime() >= worked)
        return { found, complete: false, indexRead: links.indexRead }
      const isRoot = dir === workspace
      const here = isRoot ? rootRepository(dir, since) : repositoryAt(dir, since)
      if (here !== undefined && !entered.has(dir)) {
        const kind = here.risks.length > 0 ? 'risky' : 'plain'
        if (count[kind]++ < MAX_FOUND) found.push({ ...here, path: nameless.shown(dir) })
      }
      if (here?.form === 'bare') continue
      const below = subdirectories(dir, counted)
      complete &&= below !== undefined
      for (const child of below ?? [])
        if (child.includes(NO_TEXT)) queue.push(...nameless.open(dir))
        else queue.push(`${dir}/${child}`)
    }
    return { found, complete, indexRead: links.indexRead }
  } finally {
    nameless.close()
  }
}

function enteredRepositories(workspace: string, since: number): Omit<Search, 'complete'> {
  const dotGit = `${workspace}/.git`
  const gitDir = lstatOrUndefined(dotGit)?.isFile() ? readGitFile(dotGit) : dotGit
  if (gitDir === undefined) return { found: [], indexRead: true }
  const { paths, complete } = changedGitlinks(gitDir, since - SLACK_MS)
  const found = paths
    // The names come from a file that the sandbox wrote.
    .filter(path => resolve('/', path) === `/${path}`)
    .flatMap(path => {
      const here = repositoryAt(`${workspace}/${path}`, since)
      return here === undefined ? [] : [{ ...here, entered: true }]
    })
  return { found, indexRead: complete }
}

// The root's own `.git` is protected and watched; only a bare repository made in plain sight is news there.
function rootRepository(dir: string, since: number): FoundRepository | undefined {
  if (lstatOrUndefined(`${dir}/.git`) !== undefined || !looksLikeGitDir(dir)) return undefined
  return {
    path: dir,
    form: 'bare',
    planted: isNew(`${dir}/HEAD`, since),
    entered: false,
    risks: risksOf(dir),
  }
}

export const INDEX_UNREAD =
  'WARNING: the git index was changed during the run and pen cannot read it: it may list repositories that "git status" would enter. Look for nested .git before you use git'

/** One line for a person; undefined when there is nothing to look at. */
export function describeRepository({ path, planted, entered, risks }: FoundRepository): string | undefined {
  if (!planted && risks.length === 0) return undefined
  const what = planted ? 'a repository was made or changed during the run' : 'a nested repository'
  const where = `${what} at ${printable(path, 1024)}`
  if (risks.length === 0) return where
  const obeyed = risks.map(risk => printable(risk, 120)).join(', ')
  if (!entered) return `${where}: git on the host would obey ${obeyed}`
  return `WARNING: ${where} was added to the index: the next plain "git status" here would obey ${obeyed}. Remove it, or its .git, before you use git`
}

function repositoryAt(dir: string, since: number): FoundRepository | undefined {
  const dotGit = `${dir}/.git`
  const stats = lstatOrUndefined(dotGit)
  if (stats === undefined) {
    if (lstatOrUndefined(`${dir}/HEAD`) === undefined || !looksLikeGitDir(dir)) return undefined
    return {
      path: dir,
      form: 'bare',
      planted: isNew(`${dir}/HEAD`, since),
      entered: false,
      risks: risksOf(dir),
    }
  }
  if (stats.isDirectory()) {
    const planted =
      isNew(`${dotGit}/HEAD`, since) || isNew(`${dotGit}/config`, since) || isNew(`${dotGit}/hooks`, since)
    return { path: dir, form: 'directory', planted, entered: false, risks: risksOf(dotGit) }
  }
  const planted = isNew(dotGit, since)
  if (stats.isSymbolicLink())
    return { path: dir, form: 'link', planted, entered: false, risks: ['its .git is a link'] }
  const target = readGitFile(dotGit)
  const common = target === undefined ? undefined : commonOf(target)
  return {
    path: dir,
    form: 'pointer',
    planted,
    entered: false,
    risks: common === undefined ? ['its .git file is unreadable'] : risksOf(common),
  }
}

/** Where git looks for settings and hooks: what the file says, which the sandbox may have written. */
const commonOf = (gitDir: string): string => readPointer(`${gitDir}/commondir`) ?? gitDir

function risksOf(gitDir: string): readonly string[] {
  const risks: string[] = []
  for (const file of ['config', 'config.worktree']) {
    if (lstatOrUndefined(`${gitDir}/${file}`) === undefined) continue
    const settings = readGitConfig(`${gitDir}/${file}`)
    if (settings === undefined) risks.push(`${file} is unreadable`)
    else risks.push(...riskySettings(settings).filter(s => !ORDINARY.test(s)))
  }
  if (lstatOrUndefined(`${gitDir}/commondir`) !== undefined) risks.push('commondir')
  for (const name of list(`${gitDir}/hooks`)) if (!name.endsWith('.sample')) risks.push(`hooks/${name}`)
  return risks.slice(0, 20)
}

/** A submodule names its working tree, and a clone of a directory names that: neither runs anything by itself. */
const ORDINARY = /^(?:core\.worktree|remote\..*\.(?:push)?url)=(?![^/]*::)/

function isNew(path: string, since: number): boolean {
  const stats = lstatOrUndefined(path)
  // The change time cannot be set from inside, unlike the modification time.
  return stats !== undefined && Number(stats.ctimeNs / 1_000_000n) >= since - SLACK_MS
}

/** The device, when its file system counts one link per subdirectory: ext4, xfs, tmpfs. Others (btrfs, FUSE) tell nothing. */
function deviceThatCounts(workspace: string): bigint | undefined {
  const counts = [0xef53, 0x58465342, 0x01021994].includes(statfsSync(workspace).type)
  return counts ? lstatOrUndefined(workspace)?.dev : undefined
}

/** Not `.git` itself, not links. Where the link count tells that there is no subdirectory, nothing is listed. */
function subdirectories(dir: string, counted: bigint | undefined): readonly string[] | undefined {
  const stats = lstatOrUndefined(dir)
  // Too deep for a path, or gone behind a directory that was closed: git at the top does not get there either, but `cd` does.
  if (stats === undefined) return undefined
  if (!stats.isDirectory() || (stats.nlink === 2n && stats.dev === counted)) return []
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter(entry => entry.isDirectory() && entry.name !== '.git')
      .map(entry => entry.name)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

function list(dir: string): readonly string[] {
  try {
    return lstatOrUndefined(dir)?.isDirectory() ? readdirSync(dir) : []
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return []
  }
}
