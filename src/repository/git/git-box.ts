/**
 * Runs git on the sandbox's own repository, in a box. The repository is hostile: its settings may make git run any program,
 * and that program stays in the box.
 */
import { type BoxWorld, runInBox } from '../../backend/box.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import { gitSteps } from '../../plan/git-steps.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { GIT_ENVIRONMENT } from './git-environment.ts'
import type { GitAnswer, GitCall } from './git-runner.ts'

const TIMEOUT_MS = 60_000
export const BOX_PATH = '/usr/local/bin:/usr/bin:/bin'

export class GitBox {
  readonly #world: BoxWorld
  readonly #git: GitDirectory
  readonly #own: HostPath
  readonly #until: number

  /** `own` is the sandbox's repository on the host. In the box it has the path of the host's one. No command runs after `until`. */
  constructor(world: BoxWorld, git: GitDirectory, own: HostPath, until = Number.POSITIVE_INFINITY) {
    this.#until = until
    this.#world = world
    this.#git = git
    this.#own = own
  }

  readonly run = ({
    script,
    args = [],
    gitDir,
    input = '',
    env,
    outputTo,
    timeoutMs = TIMEOUT_MS,
  }: GitCall): Promise<GitAnswer> => {
    const { path } = this.#git
    const left = this.#until - Date.now()
    if (left <= 0)
      return Promise.resolve({ code: 137, stdout: Buffer.alloc(0), stderr: 'the sync takes too long' })
    const at = gitDir === undefined ? path : `${path}/${gitDir}`
    return runInBox(this.#world, {
      argv: ['/bin/sh', '-c', script, 'pen', ...args],
      env: { ...GIT_ENVIRONMENT, PATH: BOX_PATH, HOME: '/tmp', GIT_DIR: at, GIT_WORK_TREE: '/tmp', ...env },
      steps: gitSteps(this.#git, this.#own),
      input: Buffer.from(input),
      ...(outputTo !== undefined && { outputTo }),
      timeoutMs: Math.min(timeoutMs, left),
    })
  }
}
