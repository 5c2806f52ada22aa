/** One audit record as one line. Every text in it can come from a sandbox, so it is hostile until `printable()`. */
import type { AuditRecord } from '../../audit/read.ts'
import { asWord, inQuotes, printable, printableJson } from '../../base/printable.ts'
import { isBackgroundHost } from '../../policy/network/background-hosts.ts'
import type { Colour, Paint } from './colour.ts'

const COLOURS: Readonly<Record<AuditRecord['verdict'], Colour>> = {
  allow: 'green',
  hold: 'cyan',
  deny: 'red',
  error: 'yellow',
  note: 'dim',
}
const TARGET_WIDTH = 32

export function logLine(record: AuditRecord, paint: Paint): string {
  const { verdict } = record
  const field = fieldsOf(record)
  const { target, text } = describe(record, field)
  const fix = field('fix')
  const parts = [
    paint('dim', localTime(record.time)),
    paint(COLOURS[verdict], verdict.padEnd(5)),
    target.padEnd(TARGET_WIDTH),
    fix === undefined ? text : `${text}  ${paint('bold', `→ ${fix}`)}`,
  ]
  return parts.join('  ').trimEnd()
}

/** Refused background calls of agents, such as reports and update checks, are counted, not shown. */
export const isBackgroundRefusal = ({ kind, name }: AuditRecord): boolean =>
  kind === 'connection-denied' && typeof name === 'string' && isBackgroundHost(name)

type Fields = (name: string) => string | undefined

const fieldsOf =
  (record: AuditRecord): Fields =>
  name => {
    const value = record[name]
    if (typeof value === 'number' || typeof value === 'boolean') return String(value)
    if (typeof value !== 'string' || value === '') return undefined
    // Some fields were escaped when they were written. Their backslashes must not be doubled again.
    return printable(value).replaceAll('\\\\', '\\')
  }

interface Description {
  readonly target: string
  readonly text: string
}

function describe(record: AuditRecord, field: Fields): Description {
  const because = field('why') ?? field('reason') ?? ''
  switch (record.kind) {
    case 'connection-allowed':
      return { target: endpoint(field), text: `allowed by ${field('rule')}${said(field)}` }
    case 'connection-held':
      return {
        target: endpoint(field),
        text: `waits for approval until ${localTime(field('until') ?? '').slice(-8)}`,
      }
    case 'connection-denied':
      return { target: endpoint(field), text: `${because}${said(field)}` }
    case 'connection-failed':
      return { target: endpoint(field), text: `allowed, but not reached: ${because}` }
    case 'connection-closed':
      return {
        target: endpoint(field),
        text: `closed (${because}): ${field('bytesUp')} bytes up, ${field('bytesDown')} down, ${field('ms')} ms`,
      }
    case 'flow-refused':
      return { target: `${endpoint(field)}/${field('protocol')}`, text: because }
    case 'dns-refused':
      return {
        target: word(field('raw') ?? 'DNS'),
        text: `${field('count')} DNS queries refused: ${because}`,
      }
    case 'limit-hit':
      return {
        target: field('limit') ?? '',
        text: `limit reached ${field('value') ?? ''} ${because}`.trimEnd(),
      }
    case 'quarantine':
      return { target: word(field('path') ?? ''), text: `${because}${moved(field)}` }
    case 'place-held':
      return {
        target: word(field('path') ?? ''),
        text:
          field('held') === 'true'
            ? `was created or replaced, and is ${field('how') === 'cover' ? 'hidden again' : 'protected again'}`
            : `was created or replaced, and could not be protected: ${because}`,
      }
    case 'broker-allowed':
      return { target: word(field('path') ?? ''), text: `${field('op')}: granted by ${field('rule') ?? '-'}` }
    case 'broker-denied':
      return { target: word(field('path') ?? ''), text: `${field('op')}: ${because}` }
    case 'broker-ended':
      return {
        target: word(field('path') ?? ''),
        text: `${field('op')} ended (${because}): ${field('bytes')} bytes, ${field('ms')} ms`,
      }
    case 'grants-changed':
      return { target: 'grants', text: changes(record) }
    case 'exec-start':
      return { target: `command ${field('execution')}`, text: `started: ${words(record)}` }
    case 'exec-end':
      return {
        target: `command ${field('execution')}`,
        text: `ended: ${field('reason') ?? `exit ${field('exitCode')}`} after ${field('ms')} ms`,
      }
    case 'forward-start':
      return {
        target: `port ${field('guest')}`,
        text: `forwarded from 127.0.0.1:${field('host')} of the host`,
      }
    case 'forward-end':
      return {
        target: `port ${field('guest')}`,
        text: `forward closed: ${field('connections')} connections, ${field('refused')} refused, ${field('ms')} ms`,
      }
    case 'file-allowed':
      return { target: word(field('path') ?? ''), text: `${field('access')} allowed by ${field('rule')}` }
    case 'file-denied':
      return { target: word(field('path') ?? ''), text: `${field('access')} refused: ${because}` }
    case 'tool-allowed':
      return { target: field('program') ?? '', text: `allowed by ${field('rule')}: ${words(record)}` }
    case 'tool-denied':
      return { target: words(record), text: because }
    case 'tool-ended':
      return { target: words(record), text: ended(field) }
    case 'cleanup-failed':
      return { target: field('what') ?? '', text: `could not be cleaned up: ${because}` }
    case 'policy-changed':
      return { target: 'policy', text: changes(record) }
    case 'policy-edit-refused':
      return {
        target: field('at') ?? 'policy',
        text: `an edit was refused, the old policy stays active: ${because}`,
      }
    case 'run-start':
      return {
        target: `run ${field('run')}`,
        text: `started: ${field('soft') === 'true' ? 'SOFT_SANDBOX, ' : ''}${field('backend')}, pen ${field('pen')}, ${field('os')} ${field('kernel')}`,
      }
    case 'run-end':
      return {
        target: `run ${field('run')}`,
        text: `ended: ${field('signal') ?? `exit ${field('exitCode')}`}`,
      }
    case 'dropped':
      return { target: 'audit', text: dropped(record, field) }
    default:
      // From a later version of pen: shown unchanged.
      return { target: printable(record.kind, 32), text: printable(JSON.stringify(record), 1000) }
  }
}

/** Quotes text that the sandbox chose, because it can imitate pen's own words. The text is already escaped. */
const word = (printed: string): string => (asWord(printed) === printed ? printed : inQuotes(printed))

function endpoint(field: Fields): string {
  const address = field('address')
  const place = field('name') ?? (address?.includes(':') ? `[${address}]` : address) ?? '?'
  return `${place}:${field('port') ?? '?'}`
}

const said = (field: Fields): string => {
  const raw = field('raw')
  return raw === undefined ? '' : ` (said ${inQuotes(raw)})`
}

const moved = (field: Fields): string => (field('to') === undefined ? '' : `; moved to ${field('to')}`)

const ended = (field: Fields): string =>
  [
    `ended: exit ${field('exitCode')} after ${field('ms')} ms`,
    ...(field('timedOut') === 'true' ? ['timed out'] : []),
    ...(field('truncated') === 'true' ? ['output truncated'] : []),
    ...(field('survivors') === '0' ? [] : [`${field('survivors')} processes still running`]),
  ].join('; ')

const words = ({ command }: AuditRecord): string =>
  Array.isArray(command) && command.length > 0
    ? command.map(word => asWord(String(word), 80)).join(' ')
    : 'a shell'

const MOST_RULES = 20

function changes({ added, removed }: AuditRecord): string {
  const list = (sign: string, rules: unknown): string[] =>
    Array.isArray(rules)
      ? [
          ...rules.slice(0, MOST_RULES).map(rule => `${sign}${printable(String(rule), 80)}`),
          ...(rules.length > MOST_RULES ? [`${sign}${rules.length - MOST_RULES} more`] : []),
        ]
      : []
  return [...list('+', added), ...list('-', removed)].join(' ') || 'changed'
}

function dropped(record: AuditRecord, field: Fields): string {
  const kinds = printableJson(record['kinds'] ?? {}).slice(0, 400)
  if (record['reason'] === 'not-written')
    return `${field('count')} records could not be written, so their actions were refused: ${kinds}`
  const reached =
    record['reached'] === undefined ? '' : `; reached ${printableJson(record['reached']).slice(0, 2000)}`
  return `full: records ${field('firstSeq')} to ${field('lastSeq')} were deleted: ${kinds}${reached}`
}

function localTime(time: string): string {
  const at = new Date(time)
  const two = (n: number): string => String(n).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}
