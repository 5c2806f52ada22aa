/**
 * A plan becomes a container whose only program is the exec daemon. It runs on the host's own loader and waits for its setup, so that
 * nothing of the image has run when `start` returns: mounts are verified, places held, and the door can be opened.
 */
import { lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import type { UndoStack } from '../../base/undo.ts'
import { boundProcesses } from '../../limits/engine-cgroup.ts'
import type { Plan } from '../../plan/plan.ts'
import { SANDBOX_HOME } from '../../policy/profile.ts'
import type { DaemonSetup } from '../../protocol/exec-order.ts'
import { INSIDE } from '../../protocol/guest-paths.ts'
import type { Running, StartOptions } from '../backend.ts'
import { DaemonLink } from '../daemon-link.ts'
import type { Others } from '../mounts/id-mapping.ts'
import { NamespaceMounts } from '../mounts/live-mounts.ts'
import { seccompFilter } from '../seccomp/filter.ts'
import { begin, type Ready, targetsOf } from './begin.ts'
import { goferOf } from './engine/gvisor.ts'
import { chooseRuntime } from './engine/runtimes.ts'
import { guestProgram } from './guest-program.ts'
import { type HeldTools, holdTools, notLocked } from './hold-tools.ts'
import { refuseVolumes } from './image-volumes.ts'
import { putInPlace } from './in-place.ts'
import { NOTHING_PLACE } from './inside-directory.ts'
import { ownedTrees } from './owned-trees.ts'
import { type PlanMounts, planMounts } from './plan-mounts.ts'
import type { RootHelperLink } from './root-helper/link.ts'
import { refuseWritableProgram, startRootHelper } from './root-helper/start.ts'
import { runningContainer } from './running.ts'
import { type Machine, shapeOf } from './shape.ts'
import { awaitNamespaces, type ShownNamespaces } from './shown-namespaces.ts'

export async function startContainer(machine: Machine, plan: Plan, options: StartOptions): Promise<Running> {
  const { engine, facts, runtime, gvisor, byHelper } = machine
  const { image, sandbox } = options
  if (image === undefined)
    throw new PenError('INTERNAL', { what: 'a container was started without an image' })
  refuseRoot(plan)
  const program = await guestProgram(options.cacheDir)
  const mounts = planMounts(plan)
  if (byHelper) refuseWritableProgram(program, mounts.binds)
  if (engine.name === 'docker') refuseVolumes(image.volumes, mounts.binds)
  const shape = await shapeOf(machine, plan, mounts, image)
  const runtimes = chooseRuntime(runtime, facts, engine.name, options.cacheDir)
  const release = gvisor ? Promise.withResolvers<boolean>() : undefined
  /** Where pen acts by a helper, that comes in a container of its own, and the exec daemon shows it the way. */
  const other: { helper?: Promise<RootHelperLink>; shown?: () => Promise<ShownNamespaces> } = {}
  const besides = (ready: Ready): void => {
    other.shown = awaitNamespaces(ready.inside.shownSocket, ready.daemon, ready.undo)
    other.helper = startRootHelper({ engine, program, runtimes, cacheDir: options.cacheDir, ...ready })
    other.helper.catch(() => undefined)
  }
  const { inside, daemon, order, coming, disarm, undo } =
    (await options.headStart?.take(shape, runtimes.candidates[0])) ??
    (await begin({
      shape,
      program,
      sandbox,
      runtimes,
      release: release?.promise,
      ...(byHelper && { before: besides }),
    }))
  try {
    undo.push('the start signal', () => release?.resolve(false))
    // While the engine is at it.
    const trees =
      plan.runAs === 'self' ? undefined : treesOf(plan, mounts, undo, gvisor ? 'swapped' : 'nobody')
    const setup: DaemonSetup = {
      user: plan.user,
      given: gvisor ? mounts.given.toReversed() : [SANDBOX_HOME],
      env: plan.env.map(({ name, value }) => ({ name, value })),
      seccomp: seccompFilter(process.arch === 'arm64' ? 'arm64' : 'x64', {
        exec: plan.listedExec ? 'listed' : 'any',
      }),
      emptyBounding: true,
      ...(gvisor && { processes: plan.limits.pids }),
    }
    options.meanwhile?.()
    const container = await coming
    const helper = other.helper && (await container.whileAlive(other.helper))
    if (helper !== undefined) container.killer = process => helper.kill(process)
    const namespaces = other.shown && (await container.whileAlive(other.shown()))
    const by = helper === undefined || namespaces === undefined ? undefined : { helper, ...namespaces }
    const entrance = () => (gvisor ? goferOf(container.init) : container.init)
    const live = new NamespaceMounts(entrance, {
      nothing: NOTHING_PLACE,
      ids: 'many',
      ...(by !== undefined && { by: { helper: by.helper, entrance: by } }),
    })
    undo.push('the mounts', () => live.close())
    const { init } = container
    // Scratch is gVisor's own memory: what lies in it nobody can give away but the exec daemon.
    const placed = gvisor ? { ...mounts, given: [] } : mounts
    const furnish = async (): Promise<HeldTools> => {
      await untilEntered(live)
      const [, furnished] = await Promise.all([
        putInPlace({
          init: entrance() ?? init,
          mounts: live,
          plan: placed,
          own: { from: inside.shown, at: INSIDE },
          user: plan.user,
          trees,
        }),
        options.furnish(
          by === undefined
            ? { kind: 'of-process', pid: init, userNamespace: facts.rootless }
            : { kind: 'by-helper', ...by },
        ),
      ])
      if (by !== undefined) undo.push('the network counters', async () => await furnished.settle())
      const held = await holdTools({
        plan,
        tools: options.policy.tools,
        init: entrance() ?? init,
        mounts: live,
        path: image.path,
        binds: mounts.binds,
        targets: targetsOf(order),
        daemon: daemon.connected,
        loader: program.loader,
      })
      release?.resolve(true)
      return held
    }
    const connected = container.whileAlive(daemon.connected)
    connected.catch(() => undefined)
    const held = await container.whileAlive(helper === undefined ? furnish() : helper.whileThere(furnish()))
    disarm()
    options.headStart?.remember(shape, runtimes.candidates[0])
    return runningContainer({
      container,
      mounts: live,
      undo,
      inside: inside.shown,
      notes: held.notes,
      notReady: cause => (held.executable === undefined ? cause : notLocked(cause)),
      helper,
      root: by === undefined ? undefined : `/proc/self/fd/${by.root}`,
      network: by === undefined ? undefined : { kind: 'by-helper', ...by },
      onReady: async () => {
        if (!facts.held.includes('pids') || gvisor) return
        if (helper === undefined) boundProcesses(init, plan.limits.pids)
        else await helper.boundProcesses(init, plan.limits.pids)
      },
      // It comes, and sets itself up, while the supervisor still gets ready.
      link: connected.then(
        socket =>
          new DaemonLink(socket, {
            ...setup,
            ...(held.executable !== undefined && { executable: held.executable }),
          }),
      ),
    })
  } catch (error) {
    await undo.unwind()
    throw error
  }
}

const GLANCE_MS = 2
const PATIENCE_MS = 30_000

/** An ordinary user may not enter before the runtime, which guards itself, has become the container's first program. */
async function untilEntered(mounts: NamespaceMounts): Promise<void> {
  for (const began = performance.now(); !mounts.ready(); await Bun.sleep(GLANCE_MS))
    if (performance.now() - began > PATIENCE_MS)
      throw new PenError('BACKEND', {
        what: 'pen may not enter the container, to guard its files and its network',
        hint: '`pen doctor` tries the engine',
      })
}

/** The exec daemon alone is uid 0 of the container, and commands that were it could take it over. */
function refuseRoot({ user }: Plan): void {
  if (user.uid === 0)
    throw new PenError('CONFIG_VALUE', {
      what: 'no command may be root, not even of a container',
      hint: 'name another user: "user": "1000:1000"',
    })
}

function treesOf(plan: Plan, { binds }: PlanMounts, undo: UndoStack, others: Others) {
  const { uid, gid } = lstatSync(plan.workspace)
  return ownedTrees(binds, { uid, gid }, plan.user, undo, others)
}
