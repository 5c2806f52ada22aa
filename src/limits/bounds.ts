/**
 * What the kernel holds from the first process on. Made before the sandbox, and small, because the start waits for it: what
 * is watched besides is in `limits.ts`, which is loaded while the sandbox is being set up.
 */
import type { Limits } from '../policy/policy.ts'
import { type Cgroup, removeCgroups } from './cgroup.ts'
import { cgroupName } from './cgroup-name.ts'
import { openV1 } from './cgroup-v1.ts'
import { openV2 } from './cgroup-v2.ts'
import { boundsProcessesByNamespace, type LimitSupport, limitSupport } from './probe.ts'
import { scopeArguments } from './systemd-scope.ts'

/** Those that pen may use itself; node:os knows no more, and takes longer to load than all of this. */
export const CORES = navigator.hardwareConcurrency

export interface BoundOptions {
  readonly limits: Limits
  readonly runId: string
  /** Where a backend makes the cgroups itself, and in tests: another view of the machine. */
  readonly found?: LimitSupport
}

export class Bounds {
  readonly limits: Limits
  readonly found: LimitSupport
  /** Of the cgroup or scope. */
  readonly name: string
  readonly cgroup: Cgroup | undefined
  /** Goes in front of the guard's command line. */
  readonly wrap: readonly string[]
  /** What `wrap` needs in its environment. */
  readonly wrapEnv: Readonly<Record<string, string>>
  /** RLIMIT_NPROC for the init, where no cgroup counts processes; undefined when it must not be set. */
  readonly nproc: number | undefined

  constructor({ limits, runId, found = limitSupport() }: BoundOptions) {
    this.limits = limits
    this.found = found
    this.name = cgroupName(runId)
    this.cgroup = this.#open()
    const tool = found.means.how === 'systemd-scope' ? found.means.tool : undefined
    this.wrap = tool === undefined ? [] : scopeArguments(tool, limits, this.name)
    this.wrapEnv = tool === undefined ? {} : { XDG_RUNTIME_DIR: tool.runtimeDir }
    // The init counts too. An engine has set its own, for a process that is not this user's to limit.
    const isOurs = found.means.how !== 'engine' && !found.held.has('pids')
    this.nproc = isOurs && boundsProcessesByNamespace() ? limits.pids + 1 : undefined
  }

  /** The guard writes `0` into each before it becomes the sandbox. */
  get joinFds(): readonly number[] {
    return this.cgroup?.joinFds ?? []
  }

  #open(): Cgroup | undefined {
    const { means } = this.found
    if (means.how === 'cgroup-v1') return openV1(this.limits, this.name, means.parents, CORES)
    return means.how === 'cgroup-v2' ? openV2(this.limits, this.name, means.parent) : undefined
  }

  /** Removes the cgroups. It fails when one stays busy; the next sweep then removes it. */
  async remove(): Promise<void> {
    await removeCgroups(this.cgroup?.dirs ?? [])
  }
}

/** What cannot be bounded stops the run here. */
export const openBounds = (options: BoundOptions): Bounds => new Bounds(options)
