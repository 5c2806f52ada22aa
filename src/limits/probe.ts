/** Which limits this user can enforce on this machine, and how. Only looks; `openBounds` tries. */
import { kernelRelease } from '../base/kernel/kernel-facts.ts'
import type { Capabilities, Enforcement } from '../plan/gaps.ts'
import { CGROUP_LIMITS, type CgroupLimit } from './cgroup.ts'
import { findV1 } from './cgroup-v1.ts'
import { findV2, type V2Parent } from './cgroup-v2.ts'
import { type CgroupView, findOwnCgroups, kernelView } from './own-cgroup.ts'
import { findScopeTool, type ScopeTool } from './systemd-scope.ts'

export type LimitMechanism =
  | { readonly how: 'cgroup-v1'; readonly parents: ReadonlyMap<CgroupLimit, string> }
  | { readonly how: 'cgroup-v2'; readonly parent: V2Parent }
  | { readonly how: 'systemd-scope'; readonly tool: ScopeTool }
  /** A container engine makes and removes the cgroups. */
  | { readonly how: 'engine' }
  | { readonly how: 'watchdog' }

export interface LimitSupport {
  readonly mechanism: LimitMechanism
  readonly held: ReadonlySet<CgroupLimit>
}

export function findLimitSupport(
  view: CgroupView = kernelView(),
  uid = process.getuid?.() ?? 0,
): LimitSupport {
  const own = findOwnCgroups(view)
  const v1 = findV1(own)
  if (v1.size > 0) return { mechanism: { how: 'cgroup-v1', parents: v1 }, held: new Set(v1.keys()) }
  const v2 = findV2(own)
  if (v2 !== undefined) return { mechanism: { how: 'cgroup-v2', parent: v2 }, held: v2.holds }
  const tool = own.v2 !== undefined && own.v1.size === 0 && uid !== 0 ? findScopeTool(uid) : undefined
  if (tool !== undefined) return { mechanism: { how: 'systemd-scope', tool }, held: new Set(CGROUP_LIMITS) }
  return { mechanism: { how: 'watchdog' }, held: new Set() }
}

/** Before Linux 5.14, RLIMIT_NPROC counts every process of the user, inside and outside the sandbox, so it is useless. */
export function boundsProcessesByNamespace(kernel = kernelRelease()): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map(Number)
  return major > 5 || (major === 5 && minor >= 14)
}

/** How each limit is enforced. `watched` is how pen itself can enforce one. */
export function enforcementOf(
  held: ReadonlySet<CgroupLimit>,
  { pids = false, watched = 'watchdog' }: { readonly pids?: boolean; readonly watched?: Enforcement } = {},
): Capabilities['limits'] {
  const hold = (limit: CgroupLimit): Enforcement => (held.has(limit) ? 'kernel' : watched)
  return {
    memory: hold('memory'),
    cpus: hold('cpus'),
    pids: pids ? 'kernel' : hold('pids'),
    files: 'kernel',
    disk: watched,
    output: watched,
    wall: 'watchdog',
  }
}

let known: LimitSupport | undefined

/** Computed once, for the plan and for the run after it. */
export const limitSupport = (): LimitSupport => (known ??= findLimitSupport())

/** For a sandbox with its own user namespace, whose cgroups pen makes. */
export const probeLimits = ({ held } = limitSupport()): Capabilities['limits'] =>
  enforcementOf(held, { pids: boundsProcessesByNamespace() })

/** The directories in which pen makes cgroups. */
export function cgroupParents({ mechanism }: LimitSupport): readonly string[] {
  if (mechanism.how === 'cgroup-v1') return [...mechanism.parents.values()]
  return mechanism.how === 'cgroup-v2' ? [mechanism.parent.dir] : []
}
