/** Starts a prepared plan. When it returns, the sandbox is set up and its command waits for the supervisor. */
import { lstatSync, mkdirSync, rmdirSync } from 'node:fs'
import { newRunId } from '../audit/segment-name.ts'
import type { Running, StartOptions } from '../backend/backend.ts'
import { makeDirectoryBeneath } from '../base/beneath/make-directory.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { findTool } from '../base/find-tool.ts'
import type { UndoStack } from '../base/undo.ts'
import type { Door } from '../gateway/netns/door.ts'
import type { SandboxImage } from '../image/image-for.ts'
import { Bounds } from '../limits/bounds.ts'
import type { Plan } from '../plan/plan.ts'
import { SETSID_PATH } from '../plan/system-view.ts'
import { isWithin } from '../policy/files/path.ts'
import { PROXY_PORT } from '../protocol/guest-paths.ts'
import type { Pty } from '../terminal/pty.ts'
import { isTerminal } from '../terminal/termios.ts'
import { leaveNote } from './instructions.ts'
import type { Prepared } from './prepare.ts'
import type { RunOptions } from './run-sandbox.ts'
import type { SandboxDoor } from './sandbox-door.ts'
import type { Workload } from './supervisor.ts'

/** A sandbox that is set up and waits. */
export interface StartedSandbox {
  readonly prepared: Prepared
  readonly running: Running
  readonly bounds: Bounds
  /** Undefined for a sandbox without network. */
  readonly door: Door | undefined
  /** The id of this run. */
  readonly run: string
  readonly undo: UndoStack
  readonly env: RunOptions['env']
  readonly tell: RunOptions['tell']
  /** Undefined when no descriptor of pen is a terminal, and where the exec daemon opens terminals. */
  readonly pty: Pty | undefined
  /** What the exec daemon is used for. Undefined for a sandbox that is one command. */
  readonly workload: Workload | undefined
}

export async function startSandbox(
  prepared: Prepared,
  door: SandboxDoor,
  options: RunOptions,
  undo: UndoStack,
): Promise<StartedSandbox> {
  const { plan, backend, facts } = prepared
  leaveNote(facts, plan)
  makeDirectories(plan, undo)
  const run = options.headStart?.sandbox.run ?? newRunId()
  const bounds = new Bounds({ limits: plan.limits, runId: run, support: backend.bounds?.() })
  undo.push('the cgroup', async () => await bounds.remove())
  const execDaemon = backend.daemonOnly === true || options.serve !== undefined
  // The exec daemon opens a terminal for each command.
  const pty = execDaemon ? undefined : await openTerminal(undo)
  const shown = await withProxy(plan, await door.opened())
  const started = await startBackend(pty?.interactive ? onTerminal(shown) : shown, {
    prepared,
    options,
    run,
    bounds,
    door,
    pty,
    execDaemon,
  })
  const workload = execDaemon
    ? (await import('./workload.ts')).workload(plan, options, started.image)
    : undefined
  // In raw mode a line feed does not return to column one.
  const tell = pty?.interactive ? (line: string) => options.tell(`${line}\r`) : options.tell
  const { env } = options
  return { prepared, running: started.running, bounds, door: door.door, run, undo, env, tell, pty, workload }
}

interface Start {
  readonly prepared: Prepared
  readonly options: RunOptions
  readonly run: string
  readonly bounds: Bounds
  readonly door: SandboxDoor
  readonly pty: Pty | undefined
  readonly execDaemon: boolean
}

/** `image` is the name of the image, or null where the host's own programs are used. */
async function startBackend(
  plan: Plan,
  start: Start,
): Promise<{ readonly running: Running; readonly image: string | null }> {
  const { backend } = start.prepared
  const { headStart, tell, serve } = start.options
  const endProgress = serve === undefined ? await tellOfSlowStart(backend.slowStart, tell) : () => undefined
  try {
    const images = backend.engine === undefined ? undefined : await import('./container-image.ts')
    const image = images?.imageSource(start.prepared, tell)
    if (images === undefined || image === undefined)
      return { running: await backend.start(plan, startOptions(start)), image: null }
    const running = await images.startFromImage(image, headStart, async chosen => {
      const starting = backend.start(plan, startOptions(start, chosen))
      // The engine has its request by then, and pen would only wait.
      setImmediate(() => {
        loadForLater(start.options, plan)
        images.noteImageUse(start.prepared.loaded.project.stateDir, chosen)
      })
      return await starting
    })
    return { running, image: image.name }
  } finally {
    await headStart?.dismiss()
    endProgress()
  }
}

function startOptions(
  { prepared, options, run, bounds, door, pty, execDaemon }: Start,
  image?: SandboxImage,
): StartOptions {
  const { plan, loaded } = prepared
  const { project, policy } = loaded
  const opened = door.door
  return {
    sandbox: { id: project.id, run, stateDir: project.stateDir },
    cacheDir: `${project.world.state}/cache`,
    stdio: pty?.stdio ?? ['inherit', 'inherit', 'inherit'],
    execDaemon,
    placement: {
      joinFds: bounds.joinFds,
      wrap: [...bounds.wrap, ...(opened?.wrap ?? [])],
      env: bounds.wrapEnv,
      within: spawn => (opened === undefined ? spawn() : opened.within(spawn)),
      hasDoor: opened !== undefined,
    },
    rules: {
      policy,
      command: plan.argv,
      world: project.world,
      grants: async audit => {
        const { LiveGrants } = await import('./live-grants.ts')
        const live = new LiveGrants(project.stateDir, audit, options.tell)
        return () => live.now()
      },
    },
    container: {
      image,
      headStart: options.headStart,
      openDoor: namespace => door.openIn(namespace, policy, plan.network.kind === 'gateway'),
    },
  }
}

async function openTerminal(undo: UndoStack): Promise<Pty | undefined> {
  const terminals = [0, 1, 2].filter(isTerminal)
  if (terminals.length === 0) return undefined
  const pty = (await import('../terminal/pty.ts')).openPty(terminals)
  undo.push('the terminal', async () => await pty.close())
  return pty
}

async function tellOfSlowStart(text: string | undefined, tell: RunOptions['tell']): Promise<() => void> {
  if (text === undefined) return () => undefined
  const { afterPatience } = await import('./launch-line.ts')
  return afterPatience(() => tell(text))
}

/** Loads what is needed when the engine is done. A module that fails to load fails again, and is reported, where it is used. */
function loadForLater({ serve }: RunOptions, { network }: Plan): void {
  const modules: Promise<unknown>[] = [
    import('./supervise.ts'),
    import('./workload.ts'),
    ...(serve === undefined ? [import('../terminal/attach.ts')] : [import('./control-server.ts')]),
    ...(network.kind === 'gateway'
      ? [import('../gateway/netns/door.ts').then(door => door.warmDoor()), import('./open-egress.ts')]
      : []),
  ]
  for (const loading of modules) loading.catch(() => undefined)
}

/** Variables for programs that need a proxy. Other programs need no setting, except where the proxy is the only way out. */
async function withProxy(plan: Plan, door: Door | undefined): Promise<Plan> {
  if (door?.proxy.secret !== undefined) {
    const { proxyVariables } = await import('../gateway/proxy-door.ts')
    return { ...plan, env: [...plan.env, ...proxyVariables(door.proxy)] }
  }
  if (plan.network.kind !== 'gateway') return plan
  return {
    ...plan,
    env: [...plan.env, { name: 'PEN_PROXY', value: `http://127.0.0.1:${PROXY_PORT}`, secret: false }],
  }
}

/** Makes the directories that the plan mounts. The run's end removes those in the project that stayed empty. */
function makeDirectories(plan: Plan, undo: UndoStack): void {
  if (plan.makeDirectories.length === 0) return
  const owner = lstatSync(plan.workspace)
  for (const path of plan.makeDirectories) {
    try {
      if (!isWithin(path, plan.workspace)) {
        mkdirSync(path, { recursive: true, mode: 0o700 })
        continue
      }
      // A directory that root makes in a user's project belongs to that user.
      const giveTo = plan.runAs !== 'self' && owner.uid !== 0 ? owner : undefined
      // Deepest last: the stack unwinds newest first.
      for (const made of makeDirectoryBeneath(plan.workspace, path, giveTo))
        undo.push('an empty directory', () => removeIfEmpty(made))
    } catch (error) {
      throw new PenError('STATE', {
        what: `a directory could not be made (${errnoOf(error) ?? 'unknown error'})`,
        at: path,
        hint: 'check that it may be written and that the disk is not full',
        cause: error,
      })
    }
  }
}

function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch {
    // The sandbox put a file there: the directory stays.
  }
}

/** The command leads a session on its own terminal, so that job control, Ctrl-C and Ctrl-Z work as usual. */
function onTerminal(plan: Plan): Plan {
  // Where the policy lists its tools, setsid is mounted at a place of its own.
  const setsid = plan.steps.some(step => step.at === SETSID_PATH) ? SETSID_PATH : findTool('setsid')
  return setsid === undefined ? plan : { ...plan, argv: [setsid, '--ctty', '--wait', ...plan.argv] }
}
