/** Starts a prepared plan. When it returns, the sandbox is set up and its command waits for the supervisor. */
import { newRunId } from '../audit/segment-name.ts'
import type { Running, StartOptions } from '../backend/backend.ts'
import { findTool } from '../base/find-tool.ts'
import type { UndoStack } from '../base/undo.ts'
import type { Lock } from '../config/lock.ts'
import { rememberWorkspace } from '../config/project.ts'
import type { Door } from '../gateway/netns/door.ts'
import type { SandboxImage } from '../image/image-for.ts'
import { Bounds } from '../limits/bounds.ts'
import type { Plan } from '../plan/plan.ts'
import { SETSID_PATH } from '../plan/system-view.ts'
import type { HostPath } from '../policy/files/path.ts'
import { WatchRecord } from '../protect/watch-record.ts'
import { PROXY_PORT } from '../protocol/guest-paths.ts'
import { OwnRepository, REVIEW, STAYS } from '../repository/own-repository.ts'
import { neighboursOf } from '../survey/run-records.ts'
import { openPty, type Pty } from '../terminal/pty.ts'
import { afterPatience } from '../terminal/screen.ts'
import { isTerminal } from '../terminal/termios.ts'
import { leaveNote } from './instructions.ts'
import { LiveGrants } from './live-grants.ts'
import { makeDirectories } from './make-directories.ts'
import type { Prepared } from './prepare.ts'
import { repositoryOptions } from './repository-options.ts'
import type { RunOptions } from './run-sandbox.ts'
import type { SandboxDoor } from './sandbox-door.ts'

/** What the backend is started with. */
interface Setup {
  readonly prepared: Prepared
  readonly options: RunOptions
  /** The id of this run. */
  readonly run: string
  readonly bounds: Bounds
  readonly door: SandboxDoor
  /** Undefined when no descriptor of pen is a terminal, and where the exec daemon opens terminals. */
  readonly pty: Pty | undefined
  /** False for a sandbox that is one command. */
  readonly execDaemon: boolean
  /** The sandbox's own git directory. Undefined where the project has no repository. */
  readonly repository: OwnRepository | undefined
  readonly watchRecord: WatchRecord
  /** Undefined without a review layer. */
  readonly layerLock: Lock | undefined
}

/** A sandbox that is set up and waits. */
export interface StartedSandbox extends Setup {
  readonly running: Running
  /** The name of the image; null where the host's own programs are used. */
  readonly image: string | null
}

export async function startSandbox(
  planned: Prepared,
  door: SandboxDoor,
  options: RunOptions,
  undo: UndoStack,
): Promise<StartedSandbox> {
  const { backend, facts, loaded } = planned
  const run = options.headStart?.sandbox.run ?? newRunId()
  leaveNote(facts, planned.plan)
  // A `pen run` makes no sandbox that stays, but a name does.
  if (loaded.project.name !== undefined) rememberWorkspace(loaded.project)
  const layered = await openReviewLayer(planned, options, undo)
  makeDirectories(layered.prepared.plan, undo)
  const watchRecord = await WatchRecord.open(loaded.project.shared.stateDir, run)
  undo.push('the watch record', () => watchRecord.abandon())
  const name = planned.plan.layer !== undefined ? REVIEW : options.stays === undefined ? run : STAYS
  const { repository, prepared } = await openRepository(layered.prepared, name, undo)
  const { plan } = prepared
  const pids = plan.limits.pids + (backend.ownProcesses ?? 0)
  const bounds = new Bounds({ limits: { ...plan.limits, pids }, runId: run, support: backend.bounds?.() })
  undo.push('the cgroup', async () => await bounds.remove())
  const execDaemon = backend.daemonOnly === true || options.serve !== undefined
  // The exec daemon opens a terminal for each command.
  const pty = execDaemon ? undefined : openTerminal(undo)
  const own = { repository, watchRecord, layerLock: layered.lock }
  const setup: Setup = { prepared, options, run, bounds, door, pty, execDaemon, ...own }
  const shown = withProxy(plan, await door.opened())
  const started = await startBackend(pty?.interactive ? onTerminal(shown) : shown, setup)
  return { ...setup, ...started }
}

/** Loaded only for a review: see `review/`. */
async function openReviewLayer(
  prepared: Prepared,
  { tell }: RunOptions,
  undo: UndoStack,
): Promise<{ readonly prepared: Prepared; readonly lock: Lock | undefined }> {
  const { plan, facts, loaded } = prepared
  if (plan.layer === undefined) return { prepared, lock: undefined }
  const { openLayer } = await import('../review/open-layer.ts')
  const { git, records } = facts.repository
  const opened = await openLayer(plan, {
    stateDir: loaded.project.stateDir,
    cacheDir: `${loaded.project.world.state}/cache`,
    git: git === undefined ? undefined : { dir: git.path, record: records[0] ?? '.' },
    tell,
  })
  undo.push('the review layer', () => opened.close())
  return { prepared: { ...prepared, plan: opened.plan }, lock: opened.lock }
}

/** The plan names a place for the sandbox's own git directory. A run has its own, or one that an earlier run left. */
async function openRepository(
  prepared: Prepared,
  name: string,
  undo: UndoStack,
): Promise<Pick<Setup, 'repository' | 'prepared'>> {
  const { plan, facts } = prepared
  const options = repositoryOptions(prepared)
  if (options === undefined) return { repository: undefined, prepared }
  const repository = await OwnRepository.open(options, name)
  undo.push("the sandbox's git directory", () => repository.close())
  const [from, to] = [facts.repository.own, repository.dir].map(dir => dir.slice(0, -'/dir'.length))
  const moved = (path: HostPath): HostPath =>
    path.startsWith(`${from}/`) ? (`${to}${path.slice(from?.length)}` as HostPath) : path
  const steps = plan.steps.map(step => (step.op === 'bind' ? { ...step, from: moved(step.from) } : step))
  return { repository, prepared: { ...prepared, plan: { ...plan, steps, growing: plan.growing.map(moved) } } }
}

async function startBackend(plan: Plan, setup: Setup): Promise<Pick<StartedSandbox, 'running' | 'image'>> {
  const { backend } = setup.prepared
  const { headStart, tell, serve } = setup.options
  const { slowStart } = backend
  const isSilent = slowStart === undefined || serve !== undefined
  const endProgress = isSilent ? () => undefined : afterPatience(() => tell(slowStart))
  try {
    if (backend.engine === undefined)
      return { running: await backend.start(plan, startOptions(setup, undefined)), image: null }
    const { startFromImage } = await import('./container-image.ts')
    return await startFromImage(setup.prepared, backend.engine(), setup.options, image =>
      backend.start(plan, startOptions(setup, image)),
    )
  } finally {
    await headStart?.dismiss()
    endProgress()
  }
}

function startOptions(
  { prepared, options, run, bounds, door, pty, execDaemon, watchRecord, layerLock }: Setup,
  image: SandboxImage | undefined,
): StartOptions {
  const { plan, loaded } = prepared
  const { project, policy } = loaded
  const opened = door.door
  return {
    sandbox: { id: project.id, run, stateDir: project.stateDir },
    cacheDir: `${project.world.state}/cache`,
    stdio: pty?.stdio ?? ['inherit', 'inherit', 'inherit'],
    execDaemon,
    witness: watchRecord.witness,
    layerLock: layerLock?.fd,
    neighbours: () => neighboursOf(project.shared.stateDir, run),
    placement: {
      joinFds: bounds.joinFds,
      wrap: [...bounds.wrap, ...(opened?.wrap ?? [])],
      env: bounds.wrapEnv,
      within: spawn => (opened === undefined ? spawn() : opened.within(spawn)),
      hasDoor: opened !== undefined,
    },
    rules: {
      policy,
      sandbox: project.name,
      command: plan.argv,
      world: project.world,
      grants: audit => {
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

function openTerminal(undo: UndoStack): Pty | undefined {
  const terminals = [0, 1, 2].filter(isTerminal)
  if (terminals.length === 0) return undefined
  const pty = openPty(terminals)
  undo.push('the terminal', async () => await pty.close())
  return pty
}

/** Variables for programs that need a proxy. Other programs need no setting, except where the proxy is the only way out. */
function withProxy(plan: Plan, door: Door | undefined): Plan {
  const variables = door?.variables ?? (plan.network.kind === 'gateway' ? [PEN_PROXY] : [])
  return { ...plan, env: [...plan.env, ...variables] }
}

const PEN_PROXY = { name: 'PEN_PROXY', value: `http://127.0.0.1:${PROXY_PORT}`, secret: false }

/** The command leads a session on its own terminal, so that job control, Ctrl-C and Ctrl-Z work as usual. */
function onTerminal(plan: Plan): Plan {
  // Where the policy lists its tools, setsid is mounted at a place of its own.
  const setsid = plan.steps.some(step => step.at === SETSID_PATH) ? SETSID_PATH : findTool('setsid')
  return setsid === undefined ? plan : { ...plan, argv: [setsid, '--ctty', '--wait', ...plan.argv] }
}
