/** Counts refusals and failed connections on their way into the audit, for the lines that a person reads at the end of a command. */
import { isBackgroundHost } from '../policy/network/background-hosts.ts'
import type { AuditEventInput, AuditSink, Target } from './event.ts'

const MAX_TARGETS = 1000
const MAX_SHOWN = 5

/** Everything that is told in one line. */
interface Told {
  readonly start: string
  /** What follows the count. */
  readonly end: string
  readonly place: string
  /** What makes it no longer worth telling: a rule that allows the place, or an answer from it. */
  readonly until: 'allowed' | 'answered' | undefined
  count: number
  last: number
}

type Tellable = Omit<Told, 'count' | 'last'>

export class RefusalTally implements AuditSink {
  readonly #sink: AuditSink
  readonly #told = new Map<string, Told>()
  /** Lines about something else than a target, with the moment of each. */
  readonly #notes = new Map<string, number>()
  readonly #background = { hosts: new Set<string>(), count: 0, last: 0 }
  #others = 0
  #all = 0

  constructor(sink: AuditSink) {
    this.#sink = sink
  }

  record(event: AuditEventInput): void {
    this.#sink.record(event)
    this.#settle(event)
    if (event.kind === 'connection-denied' && event.name !== undefined && isBackgroundHost(event.name)) {
      this.#background.hosts.add(event.name)
      this.#background.count++
      this.#background.last = ++this.#all
      return
    }
    const told = tellable(event)
    if (told === undefined) return
    this.#all++
    const key = `${told.start}${told.end}`
    const known = this.#told.get(key)
    if (known !== undefined) {
      known.count++
      known.last = this.#all
    } else if (this.#told.size < MAX_TARGETS) this.#told.set(key, { ...told, count: 1, last: this.#all })
    else this.#others++
  }

  /** How many there were: a moment, for `since`. */
  get all(): number {
    return this.#all
  }

  /** A line for `since` alone: the end of a run tells it by itself. */
  note(line: string): void {
    if (this.#notes.size < MAX_TARGETS || this.#notes.has(line)) this.#notes.set(line, ++this.#all)
  }

  /** What was refused or failed after that moment, each target once. */
  since(all: number): string[] {
    const told = [...this.#told.values()].filter(({ last }) => last > all)
    return [
      ...[...this.#notes].flatMap(([line, last]) => (last > all ? [line] : [])),
      ...told.slice(0, MAX_SHOWN).map(one => `${one.start}${one.end}`),
      ...more(told.length - MAX_SHOWN, 'targets'),
      ...this.#quietly(all),
    ]
  }

  /** Names here are canonical, and paths plain words: nothing that a sandbox spelled says more than what it names. */
  lines(): string[] {
    const all = [...this.#told.values()].sort((a, b) => b.count - a.count)
    const rest = all.slice(MAX_SHOWN).reduce((sum, { count }) => sum + count, this.#others)
    return [
      ...all
        .slice(0, MAX_SHOWN)
        .map(({ start, end, count }) => `${start}${count > 1 ? ` (${count} times)` : ''}${end}`),
      ...more(rest, 'connections'),
      ...this.#quietly(0),
    ]
  }

  /** What has been allowed meanwhile, or has answered after all, is not told. A refusal that comes after the rule's yes stays. */
  #settle(event: AuditEventInput): void {
    const until =
      event.kind === 'connection-allowed'
        ? 'allowed'
        : event.kind === 'connection-closed' && event.bytesDown > 0
          ? 'answered'
          : undefined
    if (until === undefined || this.#told.size === 0 || !('connection' in event)) return
    const place = placeOf(event)
    for (const [key, told] of this.#told)
      if (told.until === until && told.place === place) this.#told.delete(key)
  }

  #quietly(since: number): string[] {
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

function tellable(event: AuditEventInput): Tellable | undefined {
  switch (event.kind) {
    case 'broker-denied': {
      const place = `${event.op} ${event.path}`
      if (!PLAIN.test(event.path)) return undefined
      return { start: `refused: ${place}`, end: toAllow(event.fix), place, until: undefined }
    }
    case 'connection-denied': {
      const place = placeOf(event)
      const { fix, why, reason, name } = event
      const isCommand = fix === undefined || fix.startsWith('pen ')
      // The name was allowed, and led to such an address: allowing the name again changes nothing.
      const isLater = AFTER_THE_RULES.has(reason) || (reason === 'address-not-allowed' && name !== undefined)
      return {
        start: `refused: ${place}`,
        end:
          isCommand && !isLater ? toAllow(fix) : `: ${why ?? reason}${toAllow(isCommand ? fix : undefined)}`,
        place,
        until: isLater ? undefined : 'allowed',
      }
    }
    case 'connection-failed': {
      // The program hung up first.
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

/** The gateway's own reasons: what was said on the connection, not where it goes. */
const AFTER_THE_RULES: ReadonlySet<string> = new Set([
  'sni-missing',
  'sni-mismatch',
  'bad-hello',
  'host-mismatch',
  'bad-request',
  'refused-protocol',
  'not-a-proxy-request',
])

function placeOf({ name, address, port }: Pick<Target, 'name' | 'address' | 'port'>): string {
  const place = name ?? address ?? '?'
  return `${place.includes(':') ? `[${place}]` : place}:${port}`
}

/** A path that cannot be taken for a sentence, or for a second command. Others are in `pen logs` all the same. */
const PLAIN = /^\/[\w./@%+=:,-]{0,200}$/
