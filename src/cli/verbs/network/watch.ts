import { isatty } from 'node:tty'
import { auditDirectory } from '../../../audit/directory.ts'
import { followAudit } from '../../../audit/follow.ts'
import type { AuditRecord } from '../../../audit/read.ts'
import { listSegments } from '../../../audit/read.ts'
import { runningRuns } from '../../../audit/running.ts'
import { EXIT, type ExitCode } from '../../../base/error.ts'
import { printableJson } from '../../../base/printable.ts'
import type { Project } from '../../../config/project.ts'
import { findProject } from '../../../config/project.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'
import { logLine } from '../../render/log-line.ts'
import { WatchScreen } from '../../watch/on-screen.ts'

export const verb = defineVerb({
  name: 'watch',
  summary: 'Watch this project and approve its connections',
  details:
    'On a terminal: traffic, refusals and limits as they happen, and connections that are held (pen run --ask, or network.ask "hold") with keys to answer: o for this one connection, s until the sandbox ends, a from now on, d to refuse it this time, n never. What was refused can be chosen with up and down, and allowed with the same keys. An answer is what pen allow and pen deny write. Elsewhere, or with --json, one record to a line. Until Ctrl-C.',
  flags: jsonFlag,
  examples: [
    { line: 'pen watch', does: 'in a terminal beside the sandbox' },
    { line: 'pen watch --json', does: 'every record as it comes, for a program' },
  ],
  async run({ flags, terminal, env }) {
    const project = findProject()
    const isScreen = !flags.json && isatty(0) && isatty(1) && env['TERM'] !== 'dumb'
    if (!isScreen) return await printRecords(project, flags.json, terminal)
    const screen = new WatchScreen(project, terminal.paint)
    await screen.untilEnd(await recordsOf(project, screen.ending))
    return EXIT.ok
  },
})

/** Runs that go on, from their beginning, and those that come. */
async function recordsOf(project: Project, signal?: AbortSignal): Promise<AsyncGenerator<AuditRecord[]>> {
  const dir = auditDirectory(project.stateDir)
  const over = new Set(listSegments(dir).map(({ run }) => run))
  for (const run of runningRuns(dir)) over.delete(run)
  return followAudit(dir, { intervalMs: 100, follows: run => !over.has(run), ...(signal && { signal }) })
}

async function printRecords(project: Project, json: boolean, terminal: Terminal): Promise<ExitCode> {
  const { paint } = terminal
  for await (const batch of await recordsOf(project))
    for (const record of batch) terminal.print(json ? printableJson(record) : logLine(record, paint))
  return EXIT.ok
}
