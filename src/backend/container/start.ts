/**
 * A plan becomes a container whose only program is pen's agent. It runs on the host's own loader and waits for its setup, so that
 * nothing of the image has run when `start` returns: mounts are verified, places held, and the door can be opened.
 */
import { existsSync, lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { UndoStack } from '../../base/undo.ts'
import type { CgroupLimit } from '../../limits/cgroup.ts'
import { boundProcesses } from '../../limits/engine-cgroup.ts'
import type { Plan } from '../../plan/plan.ts'
import { SANDBOX_HOME } from '../../policy/profile.ts'
import type { AgentSetup } from '../../wire/exec-order.ts'
import { AGENT_MODE, INSIDE } from '../../wire/places.ts'
import { AgentLink } from '../agent-link.ts'
import { listenForAgent } from '../agent-socket.ts'
import type { Running, StartOptions } from '../backend.ts'
import type { Others } from '../mounts/id-mapping.ts'
import { NamespaceMounts } from '../mounts/live-mounts.ts'
import { seccompFilter } from '../seccomp/filter.ts'
import { withUser } from './accounts.ts'
import { AGENT_CAPABILITIES, type ContainerOrder } from './arguments.ts'
import { Container, killNobody, removeLeft } from './container.ts'
import type { Engine } from './engine.ts'
import type { EngineFacts } from './engine-facts.ts'
import { GVISOR_CAPABILITIES, goferOf, gvisorFlags, gvisorTasks } from './gvisor.ts'
import { refuseWritableProgram, startHand } from './hand.ts'
import { hardLimits } from './hard-limits.ts'
import { type HeldTools, holdTools, notLocked } from './hold-tools.ts'
import { refuseVolumes } from './image-volumes.ts'
import { putInPlace } from './in-place.ts'
import { AGENT_NOTHING, AGENT_SHOWN, AGENT_SOCKET, makeInside } from './inside-directory.ts'
import { KEEPER_LABEL, keeperLabel } from './keeper-label.ts'
import { agentProgram } from './loader.ts'
import { requireMountPoints } from './mount-points.ts'
import { ownedTrees } from './owned-trees.ts'
import { type PlanMounts, planMounts } from './plan-mounts.ts'
import { runningContainer } from './running.ts'
import { chooseRuntime } from './runtimes.ts'
import { awaitNamespaces } from './shown-namespaces.ts'

export interface Machine {
  readonly engine: Engine
  readonly facts: EngineFacts
  /** As the policy names it. */
  readonly runtime: string | 'default'
  /** Whether that is gVisor's. */
  readonly gvisor: boolean
  /** Whether its containers are root's and pen is not: then pen acts in them by a hand. */
  readonly byHand: boolean
}

export async function startContainer(
  { engine, facts, runtime, gvisor, byHand }: Machine,
  plan: Plan,
  options: StartOptions,
): Promise<Running> {
  const { image, sandbox } = options
  if (image === undefined)
    throw new PenError('INTERNAL', { what: 'a container was started without an image' })
  refuseRoot(plan)
  const undo = new UndoStack()
  try {
    const program = await agentProgram(options.cacheDir)
    const mounts = planMounts(plan)
    if (byHand) refuseWritableProgram(program, mounts.binds)
    if (engine.name === 'docker') refuseVolumes(image.volumes, mounts.binds)
    const inside = makeInside({
      stateDir: sandbox.stateDir,
      run: sandbox.run,
      program: program.binds,
      files: filesOver(plan, mounts, image),
    })
    undo.push('inside directory', () => inside.remove())
    const targets = [...mounts.binds, ...mounts.scratch, ...inside.binds].map(({ at }) => at)
    requireMountPoints(targets, mounts.binds)
    const agent = listenForAgent(inside.socket)
    undo.push('agent socket', () => agent.close())
    const shown = byHand ? awaitNamespaces(inside.shownSocket, agent, undo) : undefined
    const order: Omit<ContainerOrder, 'runtime'> = {
      engine: engine.name,
      rootless: facts.rootless,
      runtimeFlags: gvisor ? await gvisorFlags() : [],
      capabilities: [...AGENT_CAPABILITIES, ...(gvisor ? GVISOR_CAPABILITIES : [])],
      hand: false,
      // gVisor opens the mounts when it starts: by then they have to be in place.
      verb: gvisor ? 'create' : 'run',
      name: `pen-${sandbox.id}`,
      image: image.id,
      hostname: plan.hostname,
      labels: { pen: '1', 'pen.sandbox': sandbox.id, 'pen.run': sandbox.run, [KEEPER_LABEL]: keeperLabel() },
      user: plan.user,
      network: plan.network.kind === 'bridge' ? 'bridge' : 'none',
      ...boundsOf(plan, facts, gvisor),
      scratch: mounts.scratch,
      binds: [...mounts.binds, ...inside.binds],
      env: { AGENT_IN_SANDBOX: '1', LD_PRELOAD: '', LD_LIBRARY_PATH: '', LD_AUDIT: '' },
      idFile: inside.idFile,
      pidFile: inside.pidFile,
      selinux: existsSync('/sys/fs/selinux/enforce'),
      argv: [
        ...program.words,
        AGENT_MODE,
        ...(byHand ? [`show:${AGENT_SHOWN}`] : []),
        `unix:${AGENT_SOCKET}`,
      ],
    }
    const runtimes = chooseRuntime(runtime, facts, engine.name, options.cacheDir)
    const release = gvisor ? Promise.withResolvers<boolean>() : undefined
    const nameOf = (run: string): string => `${order.name}-${run}`
    const spare = nameOf(sandbox.run)
    const left = removeLeft(
      engine,
      inside.abandoned.map(nameOf).flatMap(name => [name, `${name}-hand`]),
    )
    undo.push('containers that were left', async () => await left.catch(() => undefined))
    const beside = byHand
      ? startHand({ engine, inside, program, order, spare, runtimes, cacheDir: options.cacheDir, undo })
      : Promise.resolve(undefined)
    beside.catch(() => undefined)
    const starting = Container.run(engine, order, runtimes, spare, {
      release: release?.promise,
      ...(byHand && { killer: killNobody }),
    })
    const disarm = undo.push('container', async () => {
      const started = await starting.catch(() => undefined)
      await started?.end()
    })
    undo.push('word to start', () => release?.resolve(false))
    // While the engine is at it.
    const trees =
      plan.runAs === 'self' ? undefined : treesOf(plan, mounts, undo, gvisor ? 'swapped' : 'nobody')
    const setup: AgentSetup = {
      user: plan.user,
      given: gvisor ? mounts.given.toReversed() : [SANDBOX_HOME],
      env: plan.env.map(({ name, value }) => ({ name, value })),
      seccomp: seccompFilter(process.arch === 'arm64' ? 'arm64' : 'x64', {
        exec: plan.listedExec ? 'listed' : 'any',
      }),
      emptyBounding: true,
    }
    options.meanwhile?.()
    const container = await starting
    const hand = await container.whileAlive(beside)
    if (hand !== undefined) container.killer = process => hand.kill(process)
    const namespaces = shown === undefined ? undefined : await container.whileAlive(shown())
    const by = hand === undefined || namespaces === undefined ? undefined : { hand, ...namespaces }
    const entrance = () => (gvisor ? goferOf(container.init) : container.init)
    const live = new NamespaceMounts(entrance, {
      nothing: AGENT_NOTHING,
      ids: 'many',
      ...(by !== undefined && { by: { hand: by.hand, entrance: by } }),
    })
    undo.push('mounts', () => live.close())
    const { init } = container
    // Scratch is gVisor's own memory: what lies in it nobody can give away but the agent.
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
            : { kind: 'by-hand', ...by },
        ),
      ])
      if (by !== undefined) undo.push('last look into the namespace', async () => await furnished.settle())
      const held = await holdTools({
        plan,
        tools: options.policy.tools,
        init: entrance() ?? init,
        mounts: live,
        path: image.path,
        binds: mounts.binds,
        targets,
        agent: agent.connected,
        loader: program.loader,
      })
      release?.resolve(true)
      return held
    }
    const coming = container.whileAlive(agent.connected)
    coming.catch(() => undefined)
    const held = await container.whileAlive(hand === undefined ? furnish() : hand.whileThere(furnish()))
    disarm()
    return runningContainer({
      container,
      mounts: live,
      undo,
      inside: inside.shown,
      notes: held.notes,
      notReady: cause => (held.executable === undefined ? cause : notLocked(cause)),
      hand,
      root: by === undefined ? undefined : `/proc/self/fd/${by.root}`,
      network: by === undefined ? undefined : { kind: 'by-hand', ...by },
      onReady: async () => {
        if (!facts.held.includes('pids') || gvisor) return
        if (hand === undefined) boundProcesses(init, plan.limits.pids)
        else await hand.boundProcesses(init, plan.limits.pids)
      },
      // It comes, and sets itself up, while the keeper still gets ready.
      link: coming.then(
        socket =>
          new AgentLink(socket, {
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

/** The agent alone is uid 0 of the container, and commands that were it could take it over. */
function refuseRoot({ user }: Plan): void {
  if (user.uid === 0)
    throw new PenError('CONFIG_VALUE', {
      what: 'no command may be root, not even of a container',
      hint: 'name another user: "user": "1000:1000"',
    })
}

function filesOver(
  plan: Plan,
  { files }: PlanMounts,
  image: NonNullable<StartOptions['image']>,
): { readonly at: string; readonly text: string }[] {
  return files.flatMap(({ at, text }) => {
    // The engine's own network has name servers of its own.
    if (at === '/etc/resolv.conf' && plan.network.kind === 'bridge') return []
    if (at === '/etc/passwd') return [{ at, text: withUser(image.passwd, text) }]
    if (at === '/etc/group') return [{ at, text: withUser(image.group, text) }]
    return [{ at, text }]
  })
}

/** Tasks of the container that are pen's own: the init, and the threads of the agent, which grow with the processors. */
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
      // In a user namespace of its own only the container's processes count, each uid's apart, the agent's too; elsewhere
      // all that this uid has on the machine.
      nproc: Math.min(
        facts.rootless && !holds('pids') ? Math.max(pids, OWN_TASKS) : MOST_PROCESSES,
        hard.nproc,
      ),
      // See `leaveNoCore`: one byte is less than none.
      core: Math.min(1, hard.core),
    },
  }
}

/** More is refused where podman has lowered its own to what the kernel can count. */
const MOST_PROCESSES = 32_768

function treesOf(plan: Plan, { binds }: PlanMounts, undo: UndoStack, others: Others) {
  const { uid, gid } = lstatSync(plan.workspace)
  return ownedTrees(binds, { uid, gid }, plan.user, undo, others)
}
