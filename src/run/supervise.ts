/**
 * Supervises a started sandbox until its end. A missing command, an audit that cannot be written and a gateway that cannot serve stop the
 * run here, before the command's first instruction.
 */
import { existsSync } from 'node:fs'
import { Audit } from '../audit/append.ts'
import { auditDirectory } from '../audit/directory.ts'
import type { AuditSink } from '../audit/event.ts'
import { RefusalTally } from '../audit/refusals.ts'
import type { Running } from '../backend/backend.ts'
import { type ExitCode, PenError } from '../base/error.ts'
import { takesNow } from '../base/kernel/descriptor.ts'
import { phase } from '../base/phases.ts'
import { printable } from '../base/printable.ts'
import { onCleanupFailure, type UndoStack } from '../base/undo.ts'
import { claimGrant } from '../config/grants/grant-files.ts'
import type { Egress } from '../gateway/egress.ts'
import { LimitHandle } from '../limits/limits.ts'
import type { Plan } from '../plan/plan.ts'
import { findCommand } from '../survey/find-command.ts'
import { withReasons } from '../survey/tool-words.ts'
import { attach, exitCodeOf, whyNotStarted } from '../terminal/attach.ts'
import { screen } from '../terminal/screen.ts'
import { forwardSignals } from '../terminal/signals.ts'
import { isTerminal } from '../terminal/termios.ts'
import { Forwards } from './forwards.ts'
import { HeldNotice } from './held-notice.ts'
import { launchLines, mustBeSaid } from './launch-line.ts'
import type { Prepared } from './prepare.ts'
import type { RunOptions } from './run-sandbox.ts'
import type { Opening } from './secrets/opening.ts'
import type { StartedSandbox } from './start-sandbox.ts'
import { type Result, type Serving, Supervisor, type Workload } from './supervision/supervisor.ts'

const NOT_STOPPED =
  'Ctrl-Z does nothing here: pen watches the sandbox while it runs; fix: pen start, then pen exec'

export async function supervise(
  started: StartedSandbox,
  undo: UndoStack,
  opening: Opening | undefined,
): Promise<Result> {
  const { prepared, bounds, options } = started
  const { plan, loaded } = prepared
  const running = withReasons(started.running, loaded.policy.tools)
  const { project } = loaded
  try {
    // A missing command is the user's mistake: exit as a shell would.
    const found = started.execDaemon ? undefined : findCommand(plan, options.env['PATH'] ?? '')
    if (found?.ok === false) {
      await end(running)
      const lines = [`${printable(found.what)}\n  fix: ${printable(found.hint)}`]
      return { exitCode: found.exitCode, lines }
    }
    // In raw mode a line feed does not return to column one.
    const tell = started.pty?.interactive ? (line: string) => options.tell(`${line}\r`) : options.tell
    // Never block on a full stderr: limits and places would not be watched while we wait.
    const tellNow = (line: string): void => (takesNow(2) ? tell(line) : undefined)
    // A stopped pen would watch no place, limit or connection, and the sandbox would run on.
    undo.push(
      'the answer to Ctrl-Z',
      forwardSignals(() => tellNow(NOT_STOPPED), ['SIGTSTP']),
    )
    sayWhatHolds(prepared, running, tell)
    const { soft } = plan
    const audit = new Audit(auditDirectory(project.stateDir), { sandbox: project.id, run: started.run, soft })
    const stopReporting = onCleanupFailure(failure => audit.record({ kind: 'cleanup-failed', ...failure }))
    undo.pushToRunLast('the audit', () => {
      stopReporting()
      audit.close()
    })
    const limits = new LimitHandle(bounds, {
      // A process inside may have a directory open that was moved to the quarantine.
      growing: [...plan.growing, started.watchRecord.quarantine],
      output: `${plan.layer === undefined ? plan.workspace : `${plan.layer.dir}/${plan.layer.kind === 'overlay' ? 'upper' : 'merged'}`}/output`,
      placesFile: `${project.world.state}/cache/cgroup-places`,
    })
    const refusals = new RefusalTally(audit)
    const { egress, notice } = await openEgress(started, tellNow, refusals, opening)
    if (egress !== undefined) phase('gateway open')
    const forwarding = new Forwards({ running, audit, workspace: plan.workspace })
    const { exitCode, lines } = await new Supervisor({
      prepared,
      running,
      limits,
      audit,
      refusals,
      egress,
      vault: opening?.vault,
      forwarding,
      workload: started.execDaemon ? workloadOf(started) : undefined,
      repository: started.repository,
      watchRecord: started.watchRecord,
    }).untilEnd()
    return { exitCode, lines: [...lines, ...(notice?.summary() ?? [])] }
  } catch (error) {
    await end(running)
    throw error
  }
}

/** Kills the sandbox and waits until every process is gone. */
async function end(running: Running): Promise<void> {
  running.kill()
  await running.ended.catch(() => undefined)
}

function sayWhatHolds({ loaded, plan }: Prepared, { notes = [] }: Running, tell: RunOptions['tell']): void {
  const { project, policy, merged } = loaded
  const firstRun = !existsSync(auditDirectory(project.stateDir))
  if (!plan.soft && !mustBeSaid(merged, policy.acceptGaps, firstRun, isTerminal(2))) return
  const lines = launchLines({ ...plan, notes: [...plan.notes, ...notes] }, merged, policy.acceptGaps)
  for (const line of lines) tell(printable(line, 1024))
}

/** The gateway is loaded only here: a sandbox without network does not need it. */
async function openEgress(
  { prepared, options, door: { door } }: StartedSandbox,
  tellNow: RunOptions['tell'],
  audit: AuditSink,
  opening: Opening | undefined,
): Promise<{ readonly egress?: Egress; readonly notice?: HeldNotice }> {
  if (door === undefined) return {}
  const { connectGateway } = await import('../gateway/egress.ts')
  const { project, policy } = prepared.loaded
  const notice = new HeldNotice(audit, { tell: tellNow, env: options.env, sandbox: project.id, screen })
  const useUp = (grant: string): boolean => claimGrant(project.shared.stateDir, grant)
  return { egress: connectGateway(door, policy.network, notice, useUp, opening), notice }
}

/** What a sandbox with an exec daemon does: run one command on this terminal, or serve its control socket. */
function workloadOf({ prepared, options, image }: StartedSandbox): Workload {
  const { serve, tell } = options
  if (serve === undefined) return serving => runCommand(prepared.plan, serving, tell)
  return async serving => {
    const close = await serve(serving, image)
    await serving.running.ended.catch(() => undefined)
    return close()
  }
}

async function runCommand(plan: Plan, { running }: Serving, tell: RunOptions['tell']): Promise<ExitCode> {
  if (running.exec === undefined) throw new PenError('INTERNAL', { what: 'the sandbox has no exec daemon' })
  // The limits are set when it is ready. Earlier processes would not be counted.
  await running.ready
  phase('command started')
  const order = { argv: plan.argv, cwd: plan.cwd, env: [] }
  const ending = await attach(running.exec, order, { signals: false })
  phase('command ended')
  const why = whyNotStarted(ending, plan.argv)
  if (why !== undefined) tell(why)
  return exitCodeOf(ending)
}
