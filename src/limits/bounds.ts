/**
 * The limits that the kernel enforces from the first process on. Small and made before the sandbox, because the start waits for
 * it. `limits.ts` has the watched limits and is loaded while the sandbox is set up.
 */
import type { Limits } from '../policy/policy.ts'
import { type Cgroup, removeCgroups } from './cgroup.ts'
import { cgroupName } from './cgroup-name.ts'
import { openV1 } from './cgroup-v1.ts'
import { openV2 } from './cgroup-v2.ts'
import { boundsProcessesByNamespace, type LimitSupport, limitSupport } from './probe.ts'
import { scopeArguments } from './systemd-scope.ts'

/** The processors that pen may use. node:os returns the same number, and takes longer to load than this whole file. */
export const CORES = navigator.hardwareConcurrency

export interface BoundOptions {
  readonly limits: Limits
  readonly runId: string
  /** Another view of the machine: for a backend that makes the cgroups itself, and for tests. */
  readonly support: LimitSupport | undefined
}

export class Bounds {
  readonly limits: Limits
  readonly support: LimitSupport
  /** The name of the cgroup or scope. */
  readonly name: string
  readonly cgroup: Cgroup | undefined
  /** The prefix of the guard's command line. */
  readonly wrap: readonly string[]
  /** The environment that `wrap` needs. */
  readonly wrapEnv: Readonly<Record<string, string>>
  /** RLIMIT_NPROC for the init if no cgroup counts processes; undefined when it must not be set. */
  readonly nproc: number | undefined

  /** Throws if a limit cannot be enforced, which stops the run. */
  constructor({ limits, runId, support = limitSupport() }: BoundOptions) {
    this.limits = limits
    this.support = support
    this.name = cgroupName(runId)
    this.cgroup = this.#open()
    const tool = support.mechanism.how === 'systemd-scope' ? support.mechanism.tool : undefined
    this.wrap = tool === undefined ? [] : scopeArguments(tool, limits, this.name)
    this.wrapEnv = tool === undefined ? {} : { XDG_RUNTIME_DIR: tool.runtimeDir }
    // The init counts too. An engine sets its own limit, and pen's user may not limit the engine's process.
    const isOurs = support.mechanism.how !== 'engine' && !support.held.has('pids')
    this.nproc = isOurs && boundsProcessesByNamespace() ? limits.pids + 1 : undefined
  }

  /** The guard writes `0` into each of these before it starts the sandbox. */
  get joinFds(): readonly number[] {
    return this.cgroup?.joinFds ?? []
  }

  #open(): Cgroup | undefined {
    const { mechanism } = this.support
    if (mechanism.how === 'cgroup-v1') return openV1(this.limits, this.name, mechanism.parents, CORES)
    return mechanism.how === 'cgroup-v2' ? openV2(this.limits, this.name, mechanism.parent) : undefined
  }

  /** Removes the cgroups. A later sweep removes those that are still busy. */
  async remove(): Promise<void> {
    await removeCgroups(this.cgroup?.dirs ?? [])
  }
}
