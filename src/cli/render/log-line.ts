/** One audit record as one line. Every text in it can come from a sandbox, so it is hostile until `printable()`. */
import type { AuditRecord } from '../../audit/read.ts'
import { asWord, inQuotes, printable, printableJson } from '../../base/printable.ts'
import { isBackgroundHost } from '../../policy/network/background-hosts.ts'
import type { Colour, Paint } from './colour.ts'

export const VERDICT_COLOURS: Readonly<Record<AuditRecord['verdict'], Colour>> = {
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
  const [target, text] = describe(record, field)
  const fix = field('fix')
  const parts = [
    paint('dim', localTime(record.time)),
    paint(VERDICT_COLOURS[verdict], verdict.padEnd(5)),
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

const request = (field: Fields): string =>
  field('method') === undefined ? '' : `${field('method')} ${field('path') ?? ''}: `

/** The target and the text of each kind of record. */
const KINDS: Readonly<Record<string, (field: Fields, record: AuditRecord) => [string, string]>> = {
  'connection-allowed': field => [endpoint(field), `allowed by ${field('rule')}${said(field)}`],
  'connection-held': field => [
    endpoint(field),
    `${request(field)}waits for approval until ${localTime(field('until') ?? '').slice(-8)}`,
  ],
  'connection-denied': field => [endpoint(field), `${request(field)}${because(field)}${said(field)}`],
  'request-allowed': (field, { secrets }) => [
    endpoint(field),
    `${request(field)}allowed by ${field('rule')}${Array.isArray(secrets) ? `, with the secret ${printable(secrets.join(', '), 200)}` : ''}`,
  ],
  'request-answered': field => [endpoint(field), `answered ${field('status')} after ${field('ms')} ms`],
  'connection-failed': field => [endpoint(field), `allowed, but not reached: ${because(field)}`],
  'connection-closed': field => [
    endpoint(field),
    `closed (${because(field)}): ${field('bytesUp')} bytes up, ${field('bytesDown')} down, ${field('ms')} ms`,
  ],
  'flow-refused': field => [`${endpoint(field)}/${field('protocol')}`, because(field)],
  'dns-refused': field => [
    word(field('raw') ?? 'DNS'),
    `${field('count')} DNS queries refused: ${because(field)}`,
  ],
  'limit-hit': field => [
    field('limit') ?? '',
    `limit reached ${field('value') ?? ''} ${because(field)}`.trimEnd(),
  ],
  quarantine: field => [path(field), `${because(field)}${moved(field)}`],
  'ref-moved': field => [
    word(field('ref') ?? ''),
    `came from the sandbox (${field('commit')?.slice(0, 10) ?? '-'})`,
  ],
  'ref-refused': field => [word(field('ref') ?? ''), `did not come from the sandbox: ${because(field)}`],
  'place-held': field => [path(field), `was created or replaced, and ${held(field)}`],
  'broker-allowed': field => [path(field), `${field('op')}: granted by ${field('rule') ?? '-'}`],
  'broker-denied': field => [path(field), `${field('op')}: ${because(field)}`],
  'broker-ended': field => [
    path(field),
    `${field('op')} ended (${because(field)}): ${field('bytes')} bytes, ${field('ms')} ms`,
  ],
  'agent-signed': field => [field('target') ?? '', `signed with your key ${field('key')}`],
  'agent-refused': field => [`key ${field('key')}`, because(field)],
  'grants-changed': (_, record) => ['grants', changes(record)],
  'exec-start': (field, record) => [`command ${field('execution')}`, `started: ${words(record)}`],
  'exec-end': field => [
    `command ${field('execution')}`,
    `ended: ${field('reason') ?? `exit ${field('exitCode')}`} after ${field('ms')} ms`,
  ],
  'forward-start': field => [
    `port ${field('guest')}`,
    `forwarded from 127.0.0.1:${field('host')} of the host`,
  ],
  'forward-end': field => [
    `port ${field('guest')}`,
    `forward closed: ${field('connections')} connections, ${field('refused')} refused, ${field('ms')} ms`,
  ],
  'file-allowed': field => [path(field), `${field('access')} allowed by ${field('rule')}`],
  'file-denied': field => [path(field), `${field('access')} refused: ${because(field)}`],
  'tool-allowed': (field, record) => [
    field('program') ?? '',
    `allowed by ${field('rule')}: ${words(record)}`,
  ],
  'tool-denied': (field, record) => [words(record), because(field)],
  'tool-ended': (field, record) => [words(record), ended(field)],
  'cleanup-failed': field => [field('what') ?? '', `could not be cleaned up: ${because(field)}`],
  'policy-changed': (_, record) => ['policy', changes(record)],
  'policy-edit-refused': field => [
    field('at') ?? 'policy',
    `an edit was refused, the old policy stays active: ${because(field)}`,
  ],
  'run-start': field => [
    `run ${field('run')}`,
    `started: ${field('soft') === 'true' ? 'SOFT_SANDBOX, ' : ''}${field('backend')}, pen ${field('pen')}, ${field('os')} ${field('kernel')}`,
  ],
  'run-end': field => [
    `run ${field('run')}`,
    [`ended: ${field('signal') ?? `exit ${field('exitCode')}`}`, field('reason')].filter(Boolean).join(': '),
  ],
  dropped: (field, record) => ['audit', dropped(record, field)],
}

function describe(record: AuditRecord, field: Fields): [target: string, text: string] {
  const { kind } = record
  const known = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined
  // A kind of a later version of pen is shown unchanged.
  return known?.(field, record) ?? [printable(kind, 32), printable(JSON.stringify(record), 1000)]
}

const because = (field: Fields): string => field('why') ?? field('reason') ?? ''

const path = (field: Fields): string => word(field('path') ?? '')

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

function held(field: Fields): string {
  if (field('held') !== 'true') return `could not be protected: ${because(field)}`
  return `is ${field('how') === 'cover' ? 'hidden again' : 'protected again'}`
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
