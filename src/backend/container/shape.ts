/**
 * Everything that an engine is asked for, except what belongs to one run. It is plain data, so it can be compared and
 * stored.
 */
import { existsSync } from 'node:fs'
import { throughLocked } from '../../base/beneath/beneath.ts'
import { lookAt } from '../../base/beneath/look-at.ts'
import { readKernelFile } from '../../base/kernel/kernel-file.ts'
import type { CgroupLimit } from '../../limits/cgroup.ts'
import type { Plan } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'
import type { Image } from '../backend.ts'
import { withUser } from './accounts.ts'
import { type ContainerOrder, DAEMON_CAPABILITIES } from './arguments.ts'
import type { Engine } from './engine/engine.ts'
import type { EngineFacts } from './engine/engine-facts.ts'
import { GVISOR_CAPABILITIES, gvisorFlags, gvisorTasks } from './engine/gvisor.ts'
import type { EmptyPoint } from './inside-directory.ts'
import type { PlanMounts } from './plan-mounts.ts'

export interface Machine {
  readonly engine: Engine
  readonly facts: EngineFacts
  /** The name in the policy. */
  readonly runtime: string | 'default'
  /** True when the runtime is gVisor's. */
  readonly gvisor: boolean
  /** True when containers belong to root and pen is not root. pen then acts in them through the root helper. */
  readonly byHelper: boolean
}

type OfOneRun = 'runtime' | 'name' | 'labels' | 'idFile' | 'pidFile' | 'argv'

export interface Shape {
  readonly engine: Engine
  /** Files to mount over the image's. */
  readonly files: readonly { readonly at: string; readonly text: string }[]
  /** Where pen mounts a review layer, once the engine has made something empty there. */
  readonly points: readonly EmptyPoint[]
  /** Its binds are those of the plan. pen's own binds belong to one run. */
  readonly order: Omit<ContainerOrder, OfOneRun>
  /** True when the exec daemon sends its namespaces before it connects. */
  readonly shows: boolean
}

export async function shapeOf(
  { engine, facts, gvisor, byHelper }: Machine,
  plan: Plan,
  mounts: PlanMounts,
  image: Image,
): Promise<Shape> {
  return {
    engine,
    files: filesOver(plan, mounts, image),
    points: pointsOf(plan, mounts),
    shows: byHelper,
    order: {
      engine: engine.name,
      rootless: facts.rootless,
      runtimeFlags: gvisor ? await gvisorFlags() : [],
      capabilities: [...DAEMON_CAPABILITIES, ...(gvisor ? GVISOR_CAPABILITIES : [])],
      helper: false,
      // gVisor opens its mounts when it starts, so it starts after they are in place.
      verb: gvisor ? 'create' : 'run',
      image: image.id,
      hostname: plan.hostname,
      user: plan.user,
      network: plan.network.kind === 'bridge' ? 'bridge' : 'none',
      ...boundsOf(plan, facts, gvisor),
      scratch: mounts.scratch,
      binds: mounts.binds,
      env: { AGENT_IN_SANDBOX: '1', LD_PRELOAD: '', LD_LIBRARY_PATH: '', LD_AUDIT: '' },
      selinux: existsSync('/sys/fs/selinux/enforce'),
    },
  }
}

/** The outermost ones. The merged tree has the mount points in it. */
function pointsOf({ workspace, layer }: Plan, { layered, merged = '' }: PlanMounts): EmptyPoint[] {
  return layered
    .filter(({ at }) => !layered.some(other => other.at !== at && isWithin(at, other.at)))
    .map(({ from, at, mode }) => {
      const below = from.slice(merged.length)
      // What the layer changed is in `upper`. A sandbox may have locked its directories.
      const changed = `${layer?.dir}/upper${below}`
      const found = throughLocked(changed, () => lookAt(changed)) ?? lookAt(`${workspace}${below}`)
      return { at, mode, kind: found?.isFile() === true ? 'file' : 'directory' }
    })
}

function filesOver(
  plan: Plan,
  { files }: PlanMounts,
  image: Image,
): { readonly at: string; readonly text: string }[] {
  return files.flatMap(({ at, text }) => {
    // The engine's own network has its own name servers.
    if (at === '/etc/resolv.conf' && plan.network.kind === 'bridge') return []
    if (at === '/etc/passwd') return [{ at, text: withUser(image.passwd, text) }]
    if (at === '/etc/group') return [{ at, text: withUser(image.group, text) }]
    return [{ at, text }]
  })
}

/**
 * Tasks of pen itself in the container: the init, and the threads of the exec daemon, whose number grows with the
 * processors.
 */
const OWN_TASKS = Math.min(40, 8 + 2 * navigator.hardwareConcurrency)

function boundsOf(
  plan: Plan,
  facts: EngineFacts,
  gvisor: boolean,
): Pick<ContainerOrder, 'limits' | 'ulimits'> {
  const { memory, pids, cpus, files } = plan.limits
  const hard = hardLimits()
  const holds = (limit: CgroupLimit): boolean => facts.held.includes(limit)
  return {
    limits: {
      ...(holds('memory') && { memory }),
      ...(holds('pids') && { pids: gvisor ? gvisorTasks(pids) : pids + OWN_TASKS }),
      ...(holds('cpus') && { cpus: Math.min(cpus, navigator.hardwareConcurrency) }),
    },
    ulimits: {
      nofile: Math.min(files, hard.nofile),
      // With a user namespace only the container's processes count, per uid, including the exec daemon's. Otherwise all
      // processes of this uid on the machine count.
      nproc: Math.min(
        facts.rootless && !holds('pids') ? Math.max(pids, OWN_TASKS) : MAX_PROCESSES,
        hard.nproc,
      ),
      // See `leaveNoCore`: a limit of one byte works better than zero.
      core: Math.min(1, hard.core),
    },
  }
}

/** podman refuses more when its own limit is what the kernel can count. */
const MAX_PROCESSES = 32_768

/** Limits are cut to pen's own hard limits. The kernel refuses an engine that asks for more. */
export function hardLimits(
  text = readKernelFile('/proc/self/limits'),
): Readonly<Record<'nofile' | 'nproc' | 'core', number>> {
  const hard = (name: string): number => {
    const value = new RegExp(`^${name} +\\S+ +(\\S+)`, 'm').exec(text)?.[1]
    return value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value ?? 0)
  }
  return { nofile: hard('Max open files'), nproc: hard('Max processes'), core: hard('Max core file size') }
}
