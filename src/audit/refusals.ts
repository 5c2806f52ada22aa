/** Counts refusals on their way into the audit, for the one line a person reads at the end of a run. */
import type { AuditEventInput, AuditSink } from './event.ts'

const MAX_TARGETS = 1000
const MAX_SHOWN = 5

export class RefusalTally implements AuditSink {
  readonly #sink: AuditSink
  readonly #targets = new Map<string, { count: number; cure: string | undefined; last: number }>()
  /** Lines about something else than a target, with the moment of each. */
  readonly #notes = new Map<string, number>()
  #others = 0
  #all = 0

  constructor(sink: AuditSink) {
    this.#sink = sink
  }

  record(event: AuditEventInput): void {
    this.#sink.record(event)
    // Somebody has allowed it meanwhile: there is nothing left to tell.
    if (event.kind === 'connection-allowed' && this.#targets.size > 0) this.#targets.delete(placeOf(event))
    const target = targetOf(event)
    if (target === undefined) return
    this.#all++
    const known = this.#targets.get(target)
    if (known !== undefined) {
      known.count++
      known.last = this.#all
    } else if (this.#targets.size < MAX_TARGETS) {
      const cure = 'cure' in event ? event.cure : undefined
      this.#targets.set(target, { count: 1, cure, last: this.#all })
    } else this.#others++
  }

  /** How many there were: a moment, for `since`. */
  get all(): number {
    return this.#all
  }

  /** A line for `since` alone: the end of a run tells it by itself. */
  note(line: string): void {
    if (this.#notes.size < MAX_TARGETS || this.#notes.has(line)) this.#notes.set(line, ++this.#all)
  }

  /** What was refused after that moment, each target once. */
  since(all: number): string[] {
    const refused = [...this.#targets].filter(([, { last }]) => last > all)
    return [
      ...[...this.#notes].flatMap(([line, last]) => (last > all ? [line] : [])),
      ...refused.slice(0, MAX_SHOWN).map(([target, { cure }]) => lineOf(target, '', cure)),
    ]
  }

  /** Names here are canonical, and paths plain words: nothing that a sandbox spelled says more than what it names. */
  lines(): string[] {
    const all = [...this.#targets].sort(([, a], [, b]) => b.count - a.count)
    const lines = all
      .slice(0, MAX_SHOWN)
      .map(([target, { count, cure }]) => lineOf(target, count > 1 ? ` (${count} times)` : '', cure))
    const rest = all.slice(MAX_SHOWN).reduce((sum, [, { count }]) => sum + count, this.#others)
    return rest === 0 ? lines : [...lines, `refused: ${rest} more connections; see pen logs`]
  }
}

const lineOf = (target: string, times: string, cure: string | undefined): string =>
  `refused: ${target}${times}${cure === undefined ? '' : `; to allow it: ${cure}`}`

function targetOf(event: AuditEventInput): string | undefined {
  if (event.kind === 'broker-denied') return PLAIN.test(event.path) ? `${event.op} ${event.path}` : undefined
  return event.kind === 'connection-denied' ? placeOf(event) : undefined
}

function placeOf(
  event: Extract<AuditEventInput, { kind: 'connection-allowed' | 'connection-denied' }>,
): string {
  const place = event.name ?? event.address ?? '?'
  return `${place.includes(':') ? `[${place}]` : place}:${event.port}`
}

/** A path that cannot be taken for a sentence, or for a second command. Others are in `pen logs` all the same. */
const PLAIN = /^\/[\w./@%+=:,-]{0,200}$/
