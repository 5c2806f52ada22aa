/** Runs git on one of the two repositories: on the host's, or in a git box on the sandbox's own. */
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'

export interface GitCall {
  /** For the shell. Its arguments are `args`; `GIT_DIR` is set. */
  readonly script: string
  readonly args?: readonly string[]
  /** Below the repository's directory: the record of a worktree, or a submodule. */
  readonly gitDir?: string
  readonly input?: Buffer | string
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>
  /** In a box: a repository can make git wait for ever. */
  readonly timeoutMs?: number
  /** Descriptors in place of `input` and of the answer's `stdout`. The caller closes its own copies. */
  readonly inputFrom?: number
  readonly outputTo?: number
  /** On the host: takes the output in parts, of any length, in place of the answer's `stdout`. */
  readonly onOutput?: (chunk: Buffer) => void
}

export interface GitAnswer {
  readonly code: number
  /** From the sandbox's repository: hostile. */
  readonly stdout: Buffer
  readonly stderr: string
}

/** Does not throw for an exit code. */
export type GitRunner = (call: GitCall) => Promise<GitAnswer>

/** For commands that must succeed. */
export async function runGit(git: GitRunner, call: GitCall): Promise<Buffer> {
  const { code, stdout, stderr } = await git(call)
  if (code === 0) return stdout
  const why = stderr.trim().split('\n').at(-1) ?? ''
  throw new PenError('STATE', {
    what: `git failed (exit ${code}): ${printable(why, 400)}`,
    hint: 'pen git status shows what is not on the host yet; pen git import tries again',
  })
}

/** Fields that end with NUL, as git's `-z` writes them. */
export const fields = (bytes: Buffer): string[] => bytes.toString('latin1').split('\0').slice(0, -1)

/** Of the repository, a worktree or a submodule: see `GitCall`. */
export interface At {
  readonly gitDir?: string
}

/** The directory of a worktree's record. */
export const recordAt = ({ gitDir }: At, record: string): At => {
  const path = [gitDir, record === '.' ? undefined : record].filter(part => part !== undefined).join('/')
  return path === '' ? {} : { gitDir: path }
}
