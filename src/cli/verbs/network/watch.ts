import { auditDirectory } from '../../../audit/directory.ts'
import { followAudit } from '../../../audit/follow.ts'
import type { AuditRecord } from '../../../audit/read.ts'
import { listSegments } from '../../../audit/read.ts'
import { runningRuns } from '../../../audit/running.ts'
import { printableJson } from '../../../base/printable.ts'
import type { Project } from '../../../config/project.ts'
import { isTerminal } from '../../../terminal/termios.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'
import { logLine } from '../../render/log-line.ts'
import { WatchScreen } from '../../watch/on-screen.ts'

export const verb = defineVerb({
  name: 'watch',
  summary: 'Watch this project and approve its connections',
  details:
    'On a terminal: traffic, refusals and limits as they happen, and connections that wait for approval (pen run --ask, or network.ask "hold"). Keys: o once, s session, a always, d deny once, n never. Select a refused connection with up and down, and allow it with the same keys. Answers are saved like pen allow and pen deny. Without a terminal, or with --json: one record per line. Runs until Ctrl-C.',
  examples: {
    'pen watch': 'in a second terminal',
    'pen watch --json': 'print the audit records as they are written',
  },
  async run({ flags, terminal, env, project }) {
    const isScreen = !flags.json && isTerminal(0) && isTerminal(1) && env['TERM'] !== 'dumb'
    if (!isScreen) {
      await printRecords(project, flags.json, terminal)
      return
    }
    const screen = new WatchScreen(project, terminal.paint)
    await screen.untilEnd(recordsOf(project, screen.ending))
  },
})

/** Records of running sandboxes from their start, and of sandboxes that start later. */
function recordsOf(project: Project, signal?: AbortSignal): AsyncGenerator<AuditRecord[]> {
  const dir = auditDirectory(project.stateDir)
  const ended = new Set(listSegments(dir).map(({ run }) => run))
  for (const run of runningRuns(dir)) ended.delete(run)
  return followAudit(dir, { intervalMs: 100, follows: run => !ended.has(run), ...(signal && { signal }) })
}

async function printRecords(project: Project, json: boolean, terminal: Terminal): Promise<void> {
  const { paint } = terminal
  for await (const batch of recordsOf(project))
    for (const record of batch) terminal.print(json ? printableJson(record) : logLine(record, paint))
}
