/** Counts refusals and failed connections as they are recorded, for the summary at the end of a command. */
import { isBackgroundHost } from '../policy/network/background-hosts.ts'
import type { AuditEventInput, AuditSink, Target } from './event.ts'

const MAX_TARGETS = 1000
const MAX_SHOWN = 5

/** One line of the summary. */
interface SummaryLine {
  readonly start: string
  /** The text after the count. */
  readonly end: string
  readonly place: string
  /** What makes the line obsolete: a rule that allows the target, or an answer from it. */
  readonly until: 'allowed' | 'answered' | undefined
  count: number
  last: number
}

type LineText = Omit<SummaryLine, 'count' | 'last'>

export class RefusalTally implements AuditSink {
  readonly #sink: AuditSink
  readonly #lines = new Map<string, SummaryLine>()
  /** Lines that are not about a target, with the number of the event. */
  readonly #notes = new Map<string, number>()
  readonly #background = { hosts: new Set<string>(), count: 0, last: 0 }
  #others = 0
  #all = 0

  constructor(sink: AuditSink) {
    this.#sink = sink
  }

  record(event: AuditEventInput): void {
    this.#sink.record(event)
    this.#dropObsolete(event)
    if (event.kind === 'connection-denied' && event.name !== undefined && isBackgroundHost(event.name)) {
      this.#background.hosts.add(event.name)
      this.#background.count++
      this.#background.last = ++this.#all
      return
    }
    const line = lineFor(event)
    if (line === undefined) return
    this.#all++
    const key = `${line.start}${line.end}`
    const known = this.#lines.get(key)
    if (known !== undefined) {
      known.count++
      known.last = this.#all
    } else if (this.#lines.size < MAX_TARGETS) this.#lines.set(key, { ...line, count: 1, last: this.#all })
    else this.#others++
  }

  /** The number of events so far. Pass it to `since` later. */
  get all(): number {
    return this.#all
  }

  /** Adds a line only for `since`, because the end of a run prints it separately. */
  note(line: string): void {
    if (this.#notes.size < MAX_TARGETS || this.#notes.has(line)) this.#notes.set(line, ++this.#all)
  }

  /** The lines after the first `all` events, each target once. */
  since(all: number): string[] {
    const recent = [...this.#lines.values()].filter(({ last }) => last > all)
    return [
      ...[...this.#notes].flatMap(([line, last]) => (last > all ? [line] : [])),
      ...recent.slice(0, MAX_SHOWN).map(one => `${one.start}${one.end}`),
      ...more(recent.length - MAX_SHOWN, 'targets'),
      ...this.#backgroundLine(all),
    ]
  }

  /** Names are canonical and paths match PLAIN, so a sandbox cannot put text of its own into these lines. */
  lines(): string[] {
    const all = [...this.#lines.values()].sort((a, b) => b.count - a.count)
    const rest = all.slice(MAX_SHOWN).reduce((sum, { count }) => sum + count, this.#others)
    return [
      ...all
        .slice(0, MAX_SHOWN)
        .map(({ start, end, count }) => `${start}${count > 1 ? ` (${count} times)` : ''}${end}`),
      ...more(rest, 'connections'),
      ...this.#backgroundLine(0),
    ]
  }

  /** Drops lines about targets that were allowed or answered since. Refusals after a rule's yes stay. */
  #dropObsolete(event: AuditEventInput): void {
    const until =
      event.kind === 'connection-allowed'
        ? 'allowed'
        : event.kind === 'connection-closed' && event.bytesDown > 0
          ? 'answered'
          : undefined
    if (until === undefined || this.#lines.size === 0 || !('connection' in event)) return
    const place = placeOf(event)
    for (const [key, line] of this.#lines)
      if (line.until === until && line.place === place) this.#lines.delete(key)
  }

  #backgroundLine(since: number): string[] {
    const { hosts, count, last } = this.#background
    if (last <= since) return []
    const calls = count === 1 ? 'one call' : `${count} calls`
    return [
      `refused quietly: ${calls} to ${[...hosts].slice(0, 2).join(', ')}${hosts.size > 2 ? ' …' : ''} ` +
        '(reports and update checks); pen logs --all lists them',
    ]
  }
}

const more = (count: number, what: string): string[] =>
  count > 0 ? [`refused: ${count} more ${what}; see pen logs`] : []

function lineFor(event: AuditEventInput): LineText | undefined {
  switch (event.kind) {
    case 'broker-denied': {
      const place = `${event.op} ${event.path}`
      if (!PLAIN.test(event.path)) return undefined
      return { start: `refused: ${place}`, end: toAllow(event.fix), place, until: undefined }
    }
    case 'agent-refused': {
      const place = `key ${event.key}`
      return {
        start: `refused: ${place}`,
        end: `: ${event.why}${toAllow(event.fix)}`,
        place,
        until: undefined,
      }
    }
    case 'connection-denied': {
      const place = placeOf(event)
      const { fix, why, reason, name } = event
      const isCommand = fix === undefined || fix.startsWith('pen ')
      // The name is allowed but resolves to a refused address, so another rule for the name changes nothing.
      const isLater =
        AFTER_THE_RULES.has(reason) ||
        event.method !== undefined ||
        (reason === 'address-not-allowed' && name !== undefined)
      return {
        start: `refused: ${place}`,
        end:
          isCommand && !isLater ? toAllow(fix) : `: ${why ?? reason}${toAllow(isCommand ? fix : undefined)}`,
        place,
        until: isLater ? undefined : 'allowed',
      }
    }
    case 'connection-failed': {
      // The program closed the connection first.
      if (event.reason === 'given-up') return undefined
      const place = placeOf(event)
      const end = `: the policy allows it, but ${event.why ?? event.reason}`
      return { start: `not reached: ${place}`, end, place, until: 'answered' }
    }
    default:
      return undefined
  }
}

const toAllow = (fix: string | undefined): string => (fix === undefined ? '' : `; to allow it: ${fix}`)

/** Reasons of the gateway that are about the bytes of a connection, not about its target. */
const AFTER_THE_RULES: ReadonlySet<string> = new Set([
  'sni-missing',
  'sni-mismatch',
  'bad-hello',
  'host-mismatch',
  'bad-request',
  'refused-protocol',
  'not-a-proxy-request',
  'requests-only',
  'not-opened',
])

function placeOf({ name, address, port }: Pick<Target, 'name' | 'address' | 'port'>): string {
  const place = name ?? address ?? '?'
  return `${place.includes(':') ? `[${place}]` : place}:${port}`
}

/** A path that cannot pass as a sentence or a second command. `pen logs` shows all others. */
const PLAIN = /^\/[\w./@%+=:,-]{0,200}$/
