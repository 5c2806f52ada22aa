import { auditDirectory } from '../../../audit/directory.ts'
import { followAudit } from '../../../audit/follow.ts'
import type { AuditRecord } from '../../../audit/read.ts'
import { listSegments, readAudit } from '../../../audit/read.ts'
import { PenError } from '../../../base/error.ts'
import { printable, printableJson } from '../../../base/printable.ts'
import type { Millis } from '../../../base/quantity.ts'
import type { Project } from '../../../config/project.ts'
import { defineFlags } from '../../frame/flag-spec.ts'
import { showSuggestion } from '../../frame/suggestion.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'
import { isBackgroundRefusal, logLine } from '../../render/log-line.ts'

export const logFlags = defineFlags({
  all: { kind: 'boolean', about: 'include allowed connections, background calls, and run start and end' },
  since: { kind: 'duration', value: 'DURATION', about: 'only events of the last 90s, 1h, 2d …' },
  run: { kind: 'string', value: 'ID', about: 'only this run' },
  follow: { kind: 'boolean', about: 'keep printing new events until Ctrl-C' },
})

export const verb = defineVerb({
  name: 'logs',
  summary: 'Show what was refused or failed, with the fix',
  details:
    'One line per event: time, verdict, target, reason, and the command that allows it. --json prints the audit records, one per line.',
  flags: {
    ...logFlags,
    suggest: { kind: 'boolean', about: 'show the smallest change that allows what was refused' },
  },
  examples: {
    'pen logs': 'show refusals and errors of all stored runs',
    'pen logs --since 1h --all': 'show all events of the last hour',
    'pen logs --follow': 'also print new events',
    'pen logs --suggest --since 1h': 'show which hosts to allow; changes nothing',
    'pen logs --json --all': 'print the audit records',
  },
  async run({ flags, terminal, project }) {
    requireRun(project, flags.run)
    if (flags.suggest) await showSuggestion(project, flags, terminal)
    else await showLogs({ ...flags, project, terminal, isOfInterest: () => true })
  },
})

interface LogRequest {
  readonly project: Project
  readonly all: boolean
  readonly json: boolean
  readonly since: Millis | undefined
  readonly run: string | undefined
  readonly follow: boolean
  readonly terminal: Terminal
  readonly isOfInterest: (record: AuditRecord) => boolean
}

export function requireRun({ stateDir }: Project, run: string | undefined): void {
  if (run === undefined || listSegments(auditDirectory(stateDir)).some(segment => segment.run === run)) return
  throw new PenError('USAGE', {
    what: `no run ${run} in this project's audit`,
    at: '--run',
    hint: 'pen logs --all',
  })
}

export async function showLogs(request: LogRequest): Promise<void> {
  const { project, all, since, run, follow, terminal, isOfInterest } = request
  const dir = auditDirectory(project.stateDir)
  const from = since === undefined ? '' : new Date(Date.now() - since).toISOString()
  let damaged = 0
  let background = 0
  const isShown = (record: AuditRecord): boolean => {
    if (all) return true
    if (!isTrouble(record)) return false
    if (!isBackgroundRefusal(record)) return true
    background++
    return false
  }
  const options = {
    run,
    wanted: (record: AuditRecord) => record.time >= from && isOfInterest(record) && isShown(record),
    onDamage: () => void damaged++,
  }
  const show = printer(request)
  if (follow) {
    for await (const batch of followAudit(dir, options)) for (const record of batch) show(record)
    return
  }
  let shown = 0
  for (const record of readAudit(dir, options)) {
    show(record)
    shown++
  }
  if (listSegments(dir).length === 0) terminal.note('nothing is logged: no sandbox has run in this project')
  else if (shown === 0)
    terminal.note(all ? 'no events' : 'nothing was refused and nothing failed; see all events with --all')
  if (background > 0)
    terminal.note(
      `also refused: ${background} background calls of agents (reports, update checks); see them with --all`,
    )
  if (damaged > 0)
    terminal.note(`skipped ${damaged} damaged ${damaged === 1 ? 'line' : 'lines'} in ${printable(dir)}`)
}

const isTrouble = ({ verdict }: AuditRecord): boolean =>
  verdict === 'deny' || verdict === 'error' || verdict === 'hold'

function printer({ json, terminal }: LogRequest): (record: AuditRecord) => void {
  if (json) return record => terminal.print(printableJson(record))
  const { paint } = terminal
  return record => terminal.print(logLine(record, paint))
}
