/**
 * Runs git on the sandbox's own repository, in a box. The repository is hostile: its settings may make git run any program,
 * and that program stays in the box.
 */
import { type BoxWorld, runInBox } from '../backend/box.ts'
import type { GitDirectory } from '../plan/facts.ts'
import { gitSteps } from '../plan/git-steps.ts'
import type { HostPath } from '../policy/files/path.ts'
import { GIT_ENVIRONMENT } from './git-environment.ts'
import type { GitAnswer, GitCall } from './git-runner.ts'

export const BOX_PATH = '/usr/local/bin:/usr/bin:/bin'

export class GitBox {
  readonly #world: BoxWorld
  readonly #git: GitDirectory
  readonly #own: HostPath

  /** `own` is the sandbox's repository on the host. In the box it has the path of the host's one. */
  constructor(world: BoxWorld, git: GitDirectory, own: HostPath) {
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
    timeoutMs,
  }: GitCall): Promise<GitAnswer> => {
    const { path } = this.#git
    const at = gitDir === undefined ? path : `${path}/${gitDir}`
    return runInBox(this.#world, {
      argv: ['/bin/sh', '-c', script, 'pen', ...args],
      env: { ...GIT_ENVIRONMENT, PATH: BOX_PATH, HOME: '/tmp', GIT_DIR: at, GIT_WORK_TREE: '/tmp', ...env },
      steps: gitSteps(this.#git, this.#own),
      input: Buffer.from(input),
      ...(outputTo !== undefined && { outputTo }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    })
  }
}
