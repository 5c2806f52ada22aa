/** A prepared plan is run to its end. `pen run` is its own supervisor: this lives exactly as long as the command. */
import { lstatSync, mkdirSync, rmdirSync } from 'node:fs'
import { newRunId } from '../audit/segment-name.ts'
import type { Running } from '../backend/backend.ts'
import type { HeadStart } from '../backend/container/head-start.ts'
import { makeDirectoryBeneath } from '../base/beneath/make-directory.ts'
import { type ExitCode, errnoOf, PenError } from '../base/error.ts'
import { findTool } from '../base/find-tool.ts'
import { phase } from '../base/phases.ts'
import { printable } from '../base/printable.ts'
import { UndoStack } from '../base/undo.ts'
import type { Door } from '../gateway/netns/door.ts'
import type { SandboxImage } from '../image/image-for.ts'
import { openBounds } from '../limits/bounds.ts'
import { openGaps } from '../plan/gaps.ts'
import type { Plan } from '../plan/plan.ts'
import { SETSID_PATH } from '../plan/system-view.ts'
import { isWithin } from '../policy/files/path.ts'
import { PROXY_PORT } from '../protocol/guest-paths.ts'
import { isTerminal } from '../terminal/termios.ts'
import { beginDoor, type Prepared } from './prepare.ts'
import type { Serving } from './supervisor.ts'

export interface LaunchOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Lines for the person: what was limited, moved away or found. */
  readonly tell: (line: string) => void
  /**
   * For a sandbox that stays: begins to take orders for it. What it returns ends that, after the sandbox's end, and knows what the
   * run ended with if that was asked for.
   */
  readonly serve?: (serving: Serving, image: string | null) => Promise<() => ExitCode | undefined>
  /** What was begun before there was a plan. Whoever began it takes it away where it was not used. */
  readonly headStart?: HeadStart | undefined
}

export async function launch(prepared: Prepared, options: LaunchOptions): Promise<ExitCode> {
  const { loaded, plan, backend } = prepared
  const { project, policy } = loaded
  refuseOpenGaps(plan, policy.acceptGaps)
  const undo = new UndoStack()
  undo.push(
    'the unused door',
    () =>
      void prepared.door?.then(
        door => door.close(),
        () => undefined,
      ),
  )
  try {
    makeDirectories(plan, undo)
    const run = options.headStart?.sandbox.run ?? newRunId()
    const found = backend.bounds?.()
    const bounds = openBounds({ limits: plan.limits, runId: run, ...(found !== undefined && { found }) })
    undo.push('the cgroup', async () => await bounds.remove())
    // Its exec daemon brings a terminal of the sandbox's own to each command.
    const daemon = backend.container === true || options.serve !== undefined
    const terminals = daemon ? [] : [0, 1, 2].filter(isTerminal)
    const pty = terminals.length === 0 ? undefined : (await import('../terminal/pty.ts')).openPty(terminals)
    if (pty !== undefined) undo.push('the terminal', async () => await pty.close())
    const opened = await prepared.door
    let door = opened
    undo.push('the door', () => door?.close())
    const shown = await withProxy(plan, opened)
    const start = async (image: SandboxImage | undefined): Promise<Running> =>
      await backend.start(pty?.interactive ? onTerminal(shown) : shown, {
        stdio: pty?.stdio ?? ['inherit', 'inherit', 'inherit'],
        cacheDir: `${project.world.state}/cache`,
        joinFds: bounds.joinFds,
        wrap: [...bounds.wrap, ...(opened?.wrap ?? [])],
        within: spawn => (opened === undefined ? spawn() : opened.within(spawn)),
        env: bounds.wrapEnv,
        insideDoor: opened !== undefined,
        // Before anything of the sandbox runs in it.
        furnish: async namespace => {
          // Of a container that did not come to be, and is asked for anew.
          door?.close()
          door = undefined
          if (plan.network.kind === 'gateway') door = await beginDoor(policy, namespace)
          else if (namespace.kind === 'of-process' && !namespace.userNamespace)
            (await import('../gateway/netns/namespace.ts')).bringUpLoopbackOf(namespace.pid)
          return { settle: async () => await door?.settle() }
        },
        sandbox: { id: project.id, run, stateDir: project.stateDir },
        meanwhile: () => {
          loadForLater(options, plan)
          if (image !== undefined) void noteImage(project.stateDir, image.name)
        },
        daemon,
        headStart: options.headStart,
        command: plan.argv,
        policy,
        judging: {
          world: project.world,
          grants: async audit => {
            const { LiveGrants } = await import('./live-grants.ts')
            const live = new LiveGrants(project.stateDir, audit, options.tell)
            return () => live.now()
          },
        },
        ...(image !== undefined && { image }),
      })
    const image = await imageOf(prepared, options.tell)
    const endTelling = backend.container === true ? await tellOfStart(options) : () => undefined
    undo.push('the progress line', endTelling)
    const first = image?.recalled ?? (await image?.found())
    const running = await start(first).catch(async (error: unknown) => {
      const isGone = error instanceof PenError && error.code === 'IMAGE'
      // It was removed since it was found last.
      if (image?.recalled !== undefined && isGone) return await start(await image.found())
      // What did for the last start does not do any more: asked for anew it may.
      if (options.headStart?.wasTaken() === true) return await start(first)
      throw error
    })
    phase('backend started')
    await options.headStart?.dismiss()
    endTelling()
    // Loaded while bubblewrap works: nothing of it is needed before.
    const { keep } = await import('./supervise.ts')
    const workload = daemon
      ? (await import('./workload.ts')).workload(plan, options, image?.name ?? null)
      : undefined
    // A terminal in raw mode goes down a line without going back to its beginning.
    const tell = pty?.interactive ? (line: string) => options.tell(`${line}\r`) : options.tell
    const { exitCode, told } = await keep({
      prepared,
      running,
      bounds,
      door,
      run,
      undo,
      tell,
      env: options.env,
      workload,
    })
    if (told.length > 0) pty?.startNewLine()
    // The user's terminal is given back before anything is printed on it.
    await undo.unwind()
    phase('cleaned up')
    for (const line of told) options.tell(line)
    return exitCode
  } finally {
    await undo.unwind()
  }
}

/** A container takes its time. Whoever starts one that stays tells of that. */
async function tellOfStart({ serve, tell }: LaunchOptions): Promise<() => void> {
  if (serve !== undefined) return () => undefined
  const { afterPatience } = await import('./launch-line.ts')
  return afterPatience(() => tell('starting the container …'))
}

/** What is needed when the engine is done. One that fails to load fails again where it is needed, and is heard of there. */
function loadForLater({ serve }: LaunchOptions, { network }: Plan): void {
  const modules: Promise<unknown>[] = [
    import('./supervise.ts'),
    import('./workload.ts'),
    ...(serve === undefined ? [import('../terminal/attach.ts')] : [import('./control-server.ts')]),
    ...(network.kind === 'gateway'
      ? [
          import('../gateway/netns/door.ts').then(door => door.warmDoor()),
          import('../gateway/egress.ts'),
          import('../config/grants/grant-files.ts'),
          import('./held-notice.ts'),
        ]
      : []),
  ]
  for (const loading of modules) loading.catch(() => undefined)
}

/** For `pen gc`. Where it cannot be written the image may have to be built again: no reason not to start. */
async function noteImage(stateDir: string, name: string): Promise<void> {
  const { noteUse } = await import('../image/in-use.ts')
  try {
    noteUse(stateDir, name)
  } catch {}
}

interface ImageSource {
  readonly name: string
  /** As it was last, if it was ever. */
  readonly recalled: SandboxImage | undefined
  /** By the engine; built where it is missing. */
  found(): Promise<SandboxImage>
}

/** What a container is made of; a process sandbox has the host's own programs. */
async function imageOf(
  { backend, loaded: { policy, project } }: Prepared,
  tell: LaunchOptions['tell'],
): Promise<ImageSource | undefined> {
  if (backend.engine === undefined) return undefined
  const engine = backend.engine()
  const { cachedImageFor, recipeFor } = await import('../image/image-for.ts')
  const { recipe, notes } = recipeFor(policy, project)
  for (const note of notes) tell(printable(note, 1024))
  return {
    name: recipe.name,
    recalled: cachedImageFor(recipe, project, engine),
    found: async () => {
      const { ensureImage } = await import('../image/ensure-image.ts')
      return await ensureImage(policy, project, engine, tell)
    },
  }
}

/** For programs that insist on a proxy; everything else needs no setting, unless there is nothing but the proxy. */
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

function refuseOpenGaps(plan: Plan, accepted: readonly string[]): void {
  const open = openGaps(plan.gaps, accepted)
  if (open.length === 0) return
  throw new PenError('GAP', {
    what: `this machine cannot keep all of the policy: ${open.map(gap => `${gap.name} (${gap.why})`).join('; ')}`,
    hint: `accept by name with ${open.map(gap => `--accept-gap ${gap.name}`).join(' ')}, or change the policy`,
  })
}

/** Directories that must exist to be mounted. Those in the project that stay empty are taken away again. */
function makeDirectories(plan: Plan, undo: UndoStack): void {
  if (plan.makeDirectories.length === 0) return
  const owner = lstatSync(plan.workspace)
  for (const path of plan.makeDirectories) {
    try {
      if (!isWithin(path, plan.workspace)) {
        mkdirSync(path, { recursive: true, mode: 0o700 })
        continue
      }
      // What root makes in somebody's project is theirs, as all that the sandbox will put there.
      const giveTo = plan.runAs !== 'self' && owner.uid !== 0 ? owner : undefined
      // The last one first: they are unwound newest first.
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
    // The sandbox put something there: it stays.
  }
}

/** The command leads a session on its own terminal, so that job control, Ctrl-C and Ctrl-Z mean what they always do. */
function onTerminal(plan: Plan): Plan {
  // Where the policy lists its tools, it stands apart from them.
  const setsid = plan.steps.some(step => step.at === SETSID_PATH) ? SETSID_PATH : findTool('setsid')
  return setsid === undefined ? plan : { ...plan, argv: [setsid, '--ctty', '--wait', ...plan.argv] }
}
