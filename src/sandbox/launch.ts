/** A prepared plan is run to its end. `pen run` is its own keeper: this lives exactly as long as the command. */
import { mkdirSync, rmdirSync } from 'node:fs'
import type { Backend, Running } from '../backend/backend.ts'
import { EXIT, type ExitCode, errnoOf, PenError } from '../base/error.ts'
import { findTool } from '../base/find-tool.ts'
import { printable } from '../base/printable.ts'
import { showMillis } from '../base/quantity.ts'
import { UndoStack } from '../base/undo.ts'
import { openGaps } from '../plan/gaps.ts'
import type { Plan } from '../plan/plan.ts'
import { isWithin } from '../policy/path.ts'
import { findCommand } from './find-command.ts'
import { findRepositories, searchBudget } from './planted.ts'
import type { Prepared } from './prepare.ts'
import { openPty } from './pty.ts'
import { passSignals, Stopping } from './stopping.ts'
import { watchPlaces } from './watch-places.ts'

export interface LaunchOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Lines for the person: what was limited, moved away or found. */
  readonly tell: (line: string) => void
}

export async function launch(
  prepared: Prepared,
  backend: Backend,
  options: LaunchOptions,
): Promise<ExitCode> {
  const { loaded, plan } = prepared
  refuseOpenGaps(plan, loaded.policy.acceptGaps)
  const found = findCommand(plan, options.env['PATH'] ?? '')
  if (!found.ok) {
    options.tell(`${printable(found.what)}\n  cure: ${printable(found.hint)}`)
    return found.exitCode
  }
  const undo = new UndoStack()
  try {
    makeDirectories(plan, undo)
    const pty = openPty()
    if (pty !== undefined) undo.push('terminal', () => pty.close())
    const began = Date.now()
    const running = await backend.start(pty?.interactive ? onTerminal(plan) : plan, {
      stdio: pty?.stdio ?? ['inherit', 'inherit', 'inherit'],
      cacheDir: `${loaded.project.world.state}/cache`,
      joinFds: [],
      wrap: [],
      beforeCommand: undefined,
      insideDoor: false,
    })
    return await keep(prepared, running, undo, began, options)
  } finally {
    await undo.unwind()
  }
}

/** Watches over a running sandbox until its last process is gone, then says what there is to say. */
async function keep(
  prepared: Prepared,
  running: Running,
  undo: UndoStack,
  began: number,
  options: LaunchOptions,
): Promise<ExitCode> {
  const { loaded, facts, plan } = prepared
  const told: string[] = []
  const stopping = new Stopping(running)
  const forget = passSignals(running, stopping)
  const wall = setTimeout(() => stopping.ask('wall'), plan.limits.wall)
  const places = watchPlaces(facts.repository, loaded.project, String(began), line => told.push(line))
  const ending = await running.ended.finally(() => {
    clearTimeout(wall)
    stopping.done()
    forget()
    places.finish()
  })
  // The user's terminal is given back before anything is printed on it.
  await undo.unwind()
  for (const line of [...told, ...repositoriesFound(plan, began)]) options.tell(line)
  if (stopping.reason === 'wall') {
    options.tell(`limit: wall time of ${showMillis(plan.limits.wall)} is over, everything was ended`)
    return EXIT.timeout
  }
  return ending.kind === 'exit' ? ending.code : 128 + 9
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
  for (const path of plan.makeDirectories) {
    try {
      const inProject = isWithin(path, plan.workspace)
      const made = mkdirSync(path, { recursive: true, mode: inProject ? 0o755 : 0o700 })
      if (made !== undefined && inProject) undo.push('empty directory', () => removeIfEmpty(path))
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
  const setsid = findTool('setsid')
  return setsid === undefined ? plan : { ...plan, argv: [setsid, '--ctty', '--wait', ...plan.argv] }
}

function repositoriesFound(plan: Plan, began: number): string[] {
  const { found } = findRepositories(plan.workspace, {
    deadlineMs: searchBudget(Date.now() - began),
    since: began,
  })
  return found
    .filter(repository => repository.planted || repository.risks.length > 0)
    .map(({ path, planted, risks }) => {
      const what = planted ? 'a repository was made during the run' : 'a nested repository'
      const why =
        risks.length === 0
          ? ''
          : `: git on the host would obey ${risks.map(risk => printable(risk, 120)).join(', ')}`
      return `${what} at ${printable(path, 1024)}${why}`
    })
}
