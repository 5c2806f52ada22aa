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
import { phase } from '../base/phases.ts'
import { printable } from '../base/printable.ts'
import { onCleanupFailure } from '../base/undo.ts'
import { LimitHandle } from '../limits/limits.ts'
import { findCommand } from '../survey/find-command.ts'
import { withReasons } from '../survey/tool-words.ts'
import { isTerminal } from '../terminal/termios.ts'
import { Forwarding } from './forwarding.ts'
import { launchLines, mustBeSaid } from './launch-line.ts'
import type { OpenEgress } from './open-egress.ts'
import type { Prepared } from './prepare.ts'
import type { StartedSandbox } from './start-sandbox.ts'
import { type Result, Supervisor } from './supervisor.ts'

export async function supervise(started: StartedSandbox): Promise<Result> {
  const { prepared, bounds, undo } = started
  const { plan, loaded } = prepared
  const running = withReasons(started.running, loaded.policy.tools)
  const { project } = loaded
  try {
    // A missing command is the user's mistake: exit as a shell would.
    const found = started.workload === undefined ? findCommand(plan, started.env['PATH'] ?? '') : undefined
    if (found?.ok === false) {
      await end(running)
      const lines = [`${printable(found.what)}\n  fix: ${printable(found.hint)}`]
      return { exitCode: found.exitCode, lines }
    }
    sayWhatHolds(prepared, running, started.tell)
    const { soft } = plan
    const audit = new Audit(auditDirectory(project.stateDir), { sandbox: project.id, run: started.run, soft })
    const stopReporting = onCleanupFailure(failure => audit.record({ kind: 'cleanup-failed', ...failure }))
    undo.pushToRunLast('the audit', () => {
      stopReporting()
      audit.close()
    })
    const limits = new LimitHandle(bounds, {
      growing: plan.growing,
      output: `${plan.workspace}/output`,
      placesFile: `${project.world.state}/cache/cgroup-places`,
    })
    const refusals = new RefusalTally(audit)
    const { egress, notice } = await openNetwork(started, refusals)
    if (egress !== undefined) phase('gateway open')
    const forwarding = new Forwarding({ running, audit, workspace: plan.workspace })
    const { exitCode, lines } = await new Supervisor({
      prepared,
      running,
      limits,
      audit,
      refusals,
      egress,
      forwarding,
      workload: started.workload,
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

function sayWhatHolds(
  { loaded, plan }: Prepared,
  { notes = [] }: Running,
  tell: StartedSandbox['tell'],
): void {
  const { project, policy, merged } = loaded
  const firstRun = !existsSync(auditDirectory(project.stateDir))
  if (!plan.soft && !mustBeSaid(merged, policy.acceptGaps, firstRun, isTerminal(2))) return
  const lines = launchLines({ ...plan, notes: [...plan.notes, ...notes] }, merged, policy.acceptGaps)
  for (const line of lines) tell(printable(line, 1024))
}

/** Loaded only here: a sandbox without network does not need the gateway. */
async function openNetwork(started: StartedSandbox, audit: AuditSink): Promise<OpenEgress> {
  if (started.door === undefined) return { egress: undefined, notice: undefined }
  return (await import('./open-egress.ts')).openEgress(started, started.door, audit)
}
