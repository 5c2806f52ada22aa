/**
 * Starts a plan as a container whose only program is the exec daemon. The daemon runs on the host's loader and waits
 * for its setup. So nothing of the image has run when `start` returns: mounts are verified, places are held, and the
 * door is open.
 */
import { PenError } from '../../base/error.ts'
import { boundProcesses } from '../../limits/engine-cgroup.ts'
import type { Plan } from '../../plan/plan.ts'
import { SANDBOX_HOME } from '../../policy/profile.ts'
import type { DaemonSetup } from '../../protocol/exec-order.ts'
import type { Image, Running, StartOptions } from '../backend.ts'
import { DaemonLink } from '../daemon-link.ts'
import { seccompFilter } from '../seccomp/filter.ts'
import type { Container } from './container.ts'
import { chooseRuntime } from './engine/runtimes.ts'
import { guestProgram } from './guest-program.ts'
import { holdLock } from './hold-lock.ts'
import { notLocked } from './hold-tools.ts'
import { type PlanMounts, planMounts, refuseVolumes } from './plan-mounts.ts'
import { requestContainer } from './request-container.ts'
import type { HelperAccess } from './root-helper/access.ts'
import { refuseWritableProgram } from './root-helper/start.ts'
import { runningContainer } from './running.ts'
import { setUpContainer, treesFor } from './set-up.ts'
import { type Machine, shapeOf } from './shape.ts'

export async function startContainer(machine: Machine, plan: Plan, options: StartOptions): Promise<Running> {
  const { engine, facts, gvisor, byHelper } = machine
  const { cacheDir, sandbox } = options
  const { headStart } = options.container
  const image = requireImage(options)
  refuseRoot(plan)
  const program = await guestProgram(cacheDir)
  const mounts = planMounts(plan)
  if (byHelper) refuseWritableProgram(program, mounts.binds)
  if (engine.name === 'docker') refuseVolumes(image.volumes, [...mounts.binds, ...mounts.layered])
  // gVisor opens its mounts when it starts, so it starts only when they are in place.
  const release = gvisor ? Promise.withResolvers<boolean>() : undefined
  const shape = await shapeOf(machine, plan, mounts, image)
  const runtimes = chooseRuntime(machine.runtime, facts, engine.name, cacheDir)
  const [runtime] = runtimes.candidates
  const request = { shape, program, sandbox, runtimes, cacheDir, release: release?.promise }
  // The container that was requested before the plan is used if it has the same shape.
  const requested = (await headStart?.take(shape, runtime)) ?? (await requestContainer(request))
  const { undo } = requested
  try {
    undo.push('the start signal', () => release?.resolve(false))
    // This runs while the engine makes the container.
    const pendingTrees = treesFor(machine, plan, mounts, undo)
    pendingTrees.catch(() => undefined)
    const setup = daemonSetup(plan, mounts, gvisor)
    const container = await requested.pending
    const reached = await requested.reach(container)
    const connected = container.whileAlive(requested.daemon.connected)
    connected.catch(() => undefined)
    if (options.layerLock !== undefined) holdLock(options.layerLock, container.init, undo)
    const trees = await container.whileAlive(pendingTrees)
    const completing = setUpContainer(
      { machine, plan, mounts, image, program, options, requested, trees },
      container,
      reached,
    )
    const { held, live } = await container.whileAlive(
      reached?.helper.whileConnected(completing) ?? completing,
    )
    release?.resolve(true)
    requested.disarm()
    // A copy of the project is made again after it was accepted.
    if (plan.layer?.kind !== 'copy') headStart?.remember(shape, runtime)
    return runningContainer({
      container,
      mounts: live,
      undo,
      inside: requested.inside.shown,
      notes: held.notes,
      ownKernel: gvisor,
      notReady: cause => (held.executable === undefined ? cause : notLocked(cause)),
      reached,
      onReady: () => boundTasks(machine, plan, container, reached),
      // The exec daemon connects and sets itself up while the supervisor is still preparing.
      link: connected.then(socket => {
        const { executable } = held
        return new DaemonLink(socket, { ...setup, ...(executable !== undefined && { executable }) })
      }),
    })
  } catch (error) {
    await undo.unwind()
    throw error
  }
}

/** What the exec daemon receives before its first command. */
function daemonSetup(plan: Plan, mounts: PlanMounts, gvisor: boolean): DaemonSetup {
  return {
    user: plan.user,
    userDirectories: gvisor ? mounts.userDirectories.toReversed() : [SANDBOX_HOME],
    env: plan.env.map(({ name, value }) => ({ name, value })),
    seccomp: seccompFilter({ exec: plan.listedExec ? 'listed' : 'any' }),
    emptyBounding: true,
    ...(gvisor && { processes: plan.limits.pids }),
  }
}

/** Sets the exact limit, now that the threads of the exec daemon can be counted. gVisor's own kernel counts itself. */
async function boundTasks(
  { facts, gvisor }: Machine,
  { limits }: Plan,
  { init }: Container,
  reached: HelperAccess | undefined,
): Promise<void> {
  if (!facts.held.includes('pids') || gvisor) return
  if (reached === undefined) boundProcesses(init, limits.pids)
  else await reached.helper.boundProcesses(init, limits.pids)
}

function requireImage({ container: { image } }: StartOptions): Image {
  if (image === undefined)
    throw new PenError('INTERNAL', { what: 'a container was started without an image' })
  return image
}

/** Only the exec daemon is uid 0 of the container. A command with that uid could take it over. */
function refuseRoot({ user }: Plan): void {
  if (user.uid === 0)
    throw new PenError('CONFIG_VALUE', {
      what: 'no command may run as root, also not in a container',
      hint: 'set another user: "user": "1000:1000"',
    })
}
