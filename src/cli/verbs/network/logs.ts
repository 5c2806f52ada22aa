import { auditDirectory } from '../../../audit/directory.ts'
import { followAudit } from '../../../audit/follow.ts'
import type { AuditRecord } from '../../../audit/read.ts'
import { listSegments, readAudit } from '../../../audit/read.ts'
import { EXIT, type ExitCode, PenError } from '../../../base/error.ts'
import { printable, printableJson } from '../../../base/printable.ts'
import type { Millis } from '../../../base/quantity.ts'
import { findProject } from '../../../config/project.ts'
import { isBackgroundHost } from '../../../policy/network/background-hosts.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { showSuggestion } from '../../frame/suggestion.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'
import { logLine } from '../../render/log-line.ts'

export const logFlags = defineFlags({
  all: { kind: 'boolean', about: 'also what was allowed, background calls, and when runs began and ended' },
  since: { kind: 'duration', value: 'DURATION', about: 'only what happened in the last 90s, 1h, 2d …' },
  run: { kind: 'string', value: 'ID', about: 'only this run' },
  follow: { kind: 'boolean', about: 'go on with what happens next, until Ctrl-C' },
})

export const verb = defineVerb({
  name: 'logs',
  summary: 'Show what was refused or failed, with the fix',
  details:
    'One line each: when, the verdict, where to, why, and the command that would allow it. With --json one record to a line, as the audit holds it.',
  flags: {
    ...logFlags,
    suggest: { kind: 'boolean', about: 'show the smallest change that would let what was refused through' },
    ...jsonFlag,
  },
  examples: [
    { line: 'pen logs', does: 'refusals and errors of all runs that are kept' },
    { line: 'pen logs --since 1h --all', does: 'everything of the last hour' },
    { line: 'pen logs --follow', does: 'and what happens next' },
    {
      line: 'pen logs --suggest --since 1h',
      does: 'what pen allow would have to open, for you to read first',
    },
    { line: 'pen logs --json --all', does: 'the records themselves, for a program' },
  ],
  async run({ flags, terminal }) {
    if (flags.suggest) {
      return await showSuggestion(flags, terminal)
    }
    return await showLogs({ ...flags, terminal, isOfInterest: () => true })
  },
})

export interface LogRequest {
  readonly all: boolean
  readonly json: boolean
  readonly since: Millis | undefined
  readonly run: string | undefined
  readonly follow: boolean
  readonly terminal: Terminal
  readonly isOfInterest: (record: AuditRecord) => boolean
}

export async function showLogs(request: LogRequest): Promise<ExitCode> {
  const { all, since, run, follow, terminal, isOfInterest } = request
  const dir = auditDirectory(findProject().stateDir)
  const names = listSegments(dir)
  if (run !== undefined && !names.some(name => name.run === run))
    throw new PenError('USAGE', {
      what: `there is no run ${run} in the audit of this project`,
      at: '--run',
      hint: 'pen logs --all shows the runs that are kept',
    })

  const from = since === undefined ? '' : new Date(Date.now() - since).toISOString()
  let damaged = 0
  let background = 0
  const isShown = (record: AuditRecord): boolean => {
    if (all) return true
    if (!isTrouble(record)) return false
    if (!isBackground(record)) return true
    background++
    return false
  }
  const options = {
    run,
    wanted: (record: AuditRecord) => record.time >= from && isOfInterest(record) && isShown(record),
    onDamage: () => void damaged++,
  }
  const show = await printer(request)
  if (follow) {
    for await (const batch of followAudit(dir, options)) for (const record of batch) show(record)
    return EXIT.ok
  }
  let shown = 0
  for (const record of readAudit(dir, options)) {
    show(record)
    shown++
  }
  if (names.length === 0) terminal.note('nothing is logged yet: no sandbox has run in this project')
  else if (shown === 0)
    terminal.note(all ? 'nothing to show' : 'nothing was refused and nothing failed; --all shows the rest')
  if (background > 0)
    terminal.note(
      `background calls of agents that were refused too: ${background} (reports, update checks); --all lists them`,
    )
  if (damaged > 0)
    terminal.note(`${damaged} damaged ${damaged === 1 ? 'line' : 'lines'} in ${printable(dir)} passed over`)
  return EXIT.ok
}

const isTrouble = ({ verdict }: AuditRecord): boolean =>
  verdict === 'deny' || verdict === 'error' || verdict === 'hold'

/** Refused quietly: see `src/policy/network/background-hosts.ts`. */
export const isBackground = ({ kind, name }: AuditRecord): boolean =>
  kind === 'connection-denied' && typeof name === 'string' && isBackgroundHost(name)

async function printer({ json, terminal }: LogRequest): Promise<(record: AuditRecord) => void> {
  if (json) return record => terminal.print(printableJson(record))
  const { paint } = terminal
  return record => terminal.print(logLine(record, paint))
}
