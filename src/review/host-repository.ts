/** The user's repository, as the host's git knows it: what it tracks, and where other repositories are checked out in it. */
import { fields, type GitRunner, recordAt, runGit } from '../repository/git/git-runner.ts'
import { isBelow } from './change.ts'

export interface HostRepository {
  /** The git directory. */
  readonly dir: string
  /** Of the project's worktree in it: `.` is the main one. */
  readonly record: string
}

export interface Tracked {
  readonly files: ReadonlySet<string>
  /** Submodules. What is in them is tracked elsewhere. */
  readonly modules: readonly string[]
}

/** By the index. */
export async function trackedIn(git: GitRunner, { record }: HostRepository): Promise<Tracked> {
  const lines = fields(await runGit(git, { script: 'git ls-files --stage -z', ...recordAt({}, record) }))
  // `MODE ID STAGE\tPATH`
  const pathOf = (line: string): string => line.slice(line.indexOf('\t') + 1)
  const isModule = (line: string): boolean => line.startsWith('160000 ')
  return { files: new Set(lines.map(pathOf)), modules: lines.filter(isModule).map(pathOf) }
}

export const isTracked = (path: string, { files, modules }: Tracked): boolean =>
  files.has(path) || modules.some(module => isBelow(path, module))
