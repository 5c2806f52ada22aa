/** A prepared plan is run to its end. `pen run` is its own keeper: this lives exactly as long as the command. */
import { existsSync, lchownSync, lstatSync, mkdirSync, rmdirSync } from 'node:fs'
import { openAudit } from '../audit/append.ts'
import { auditDirectory } from '../audit/directory.ts'
import type { AuditSink } from '../audit/event.ts'
import { RefusalTally } from '../audit/refusals.ts'
import { type ExitCode, errnoOf, PenError } from '../base/error.ts'
import { findTool } from '../base/find-tool.ts'
import { printable } from '../base/printable.ts'
import { UndoStack } from '../base/undo.ts'
import { openLimits } from '../limits/limits.ts'
import { setProcessLimit } from '../limits/prlimit.ts'
import { openGaps } from '../plan/gaps.ts'
import type { Plan } from '../plan/plan.ts'
import { SETSID_PLACE } from '../plan/system-view.ts'
import { isWithin } from '../policy/path.ts'
import { findCommand } from './find-command.ts'
import { isTerminal } from './host-terminal.ts'
import { launchLines, mustBeSaid } from './launch-line.ts'
import type { WayOut } from './network.ts'
import type { Prepared } from './prepare.ts'
import { openPty } from './pty.ts'

export interface LaunchOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Lines for the person: what was limited, moved away or found. */
  readonly tell: (line: string) => void
}

export async function launch(prepared: Prepared, options: LaunchOptions): Promise<ExitCode> {
  const { loaded, plan, backend } = prepared
  const { project, policy } = loaded
  refuseOpenGaps(plan, policy.acceptGaps)
  const undo = new UndoStack()
  undo.push(
    'unused door',
    () =>
      void prepared.door?.then(
        door => door.close(),
        () => undefined,
      ),
  )
  try {
    makeDirectories(plan, undo)
    const audit = openAudit(auditDirectory(project.stateDir), { sandbox: project.id })
    undo.push('audit', () => audit.close())
    const limits = openLimits({
      limits: plan.limits,
      runId: audit.run,
      growing: plan.growing,
      output: `${plan.workspace}/output`,
      placesFile: `${project.world.state}/cache/cgroup-places`,
    })
    undo.push('limits', async () => await limits.remove())
    const pty = openPty()
    if (pty !== undefined) undo.push('terminal', async () => await pty.close())
    const { nproc } = limits
    const refusals = new RefusalTally(audit)
    const wayOut = await openWayOut(prepared, refusals, undo)
    const shown = withProxy(plan, wayOut)
    const running = await backend.start(pty?.interactive ? onTerminal(shown) : shown, {
      stdio: pty?.stdio ?? ['inherit', 'inherit', 'inherit'],
      cacheDir: `${project.world.state}/cache`,
      joinFds: limits.joinFds,
      wrap: [...limits.wrap, ...(wayOut?.door.wrap ?? [])],
      within: spawn => (wayOut === undefined ? spawn() : wayOut.door.within(spawn)),
      env: limits.wrapEnv,
      meanwhile: () => {
        requireCommand(plan, options)
        // A terminal in raw mode goes down a line without going back to its beginning.
        sayWhatHolds(prepared, pty?.interactive ? line => options.tell(`${line}\r`) : options.tell)
      },
      // Where no cgroup holds them, the limits must be in place before the command's first instruction.
      beforeCommand:
        nproc === undefined
          ? undefined
          : async init => {
              await setProcessLimit(init, { nproc })
              limits.attach(init)
            },
      insideDoor: wayOut !== undefined,
    })
    // Loaded while bubblewrap works: nothing of it is needed before.
    const { Keeper } = await import('./keeper.ts')
    const keeper = new Keeper({ prepared, running, limits, audit, refusals, wayOut })
    const { exitCode, told } = await keeper.untilEnd()
    // The user's terminal is given back before anything is printed on it.
    await undo.unwind()
    for (const line of told) options.tell(line)
    return exitCode
  } catch (error) {
    if (!(error instanceof NoCommand)) throw error
    await undo.unwind()
    options.tell(error.message)
    return error.exitCode
  } finally {
    await undo.unwind()
  }
}

/** Not pen's failure but the command line's: it ends as a shell would end it. */
class NoCommand extends Error {
  readonly exitCode: ExitCode
  constructor(message: string, exitCode: ExitCode) {
    super(message)
    this.exitCode = exitCode
  }
}

function requireCommand(plan: Plan, options: LaunchOptions): void {
  const found = findCommand(plan, options.env['PATH'] ?? '')
  if (!found.ok)
    throw new NoCommand(`${printable(found.what)}\n  cure: ${printable(found.hint)}`, found.exitCode)
}

function sayWhatHolds({ loaded, plan }: Prepared, tell: LaunchOptions['tell']): void {
  const { project, policy, merged } = loaded
  const firstRun = !existsSync(auditDirectory(project.stateDir))
  if (!mustBeSaid(merged, policy.acceptGaps, firstRun, isTerminal(2))) return
  for (const line of launchLines(plan, merged, policy.acceptGaps)) tell(printable(line, 1024))
}

/** Nothing starts unless the gateway can. */
async function openWayOut(
  prepared: Prepared,
  audit: AuditSink,
  undo: UndoStack,
): Promise<WayOut | undefined> {
  if (prepared.door === undefined) return undefined
  const door = await prepared.door
  undo.push('door', () => door.close())
  const { connectGateway } = await import('./network.ts')
  return connectGateway(door, prepared.loaded.policy.network, audit)
}

/** For programs that insist on a proxy; everything else needs no setting. */
function withProxy(plan: Plan, wayOut: WayOut | undefined): Plan {
  if (wayOut === undefined) return plan
  const { address, port } = wayOut.door.proxy
  return {
    ...plan,
    env: [...plan.env, { name: 'PEN_PROXY', value: `http://${address}:${port}`, secret: false }],
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
      const inProject = isWithin(path, plan.workspace)
      const made = mkdirSync(path, { recursive: true, mode: inProject ? 0o755 : 0o700 })
      if (made === undefined || !inProject) continue
      undo.push('empty directory', () => removeIfEmpty(path))
      // What root makes in somebody's project is theirs, as all that the sandbox will put there.
      if (plan.runAs !== 'self' && owner.uid !== 0) lchownSync(path, owner.uid, owner.gid)
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
  const setsid = plan.steps.some(step => step.at === SETSID_PLACE) ? SETSID_PLACE : findTool('setsid')
  return setsid === undefined ? plan : { ...plan, argv: [setsid, '--ctty', '--wait', ...plan.argv] }
}
