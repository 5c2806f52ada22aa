import type { AuditEvent, AuditEventOf } from './event.ts'

type Dropped = AuditEventOf<'dropped'>

/** Distinct targets that are counted by name. Others are counted together. */
const MAX_REACHED = 32

/** Counts the records of a segment. Stays in memory after the segment is dropped. */
export class Tally {
  #count = 0
  #first: number | undefined
  #last: number | undefined
  readonly #kinds = new Map<string, number>()
  readonly #reached = new Map<string, number>()

  get count(): number {
    return this.#count
  }

  add(event: AuditEvent, seq?: number): void {
    this.#count++
    this.#first ??= seq
    this.#last = seq ?? this.#last
    raise(this.#kinds, event.kind, 1)
    if (event.kind === 'connection-allowed') this.#reach(`${event.name ?? event.address}:${event.port}`, 1)
    if (event.kind === 'broker-allowed') this.#reach(`${event.op} in ${event.rule}`, 1)
  }

  merge(other: Tally): void {
    this.#count += other.#count
    this.#first ??= other.#first
    this.#last = other.#last ?? this.#last
    for (const [kind, n] of other.#kinds) raise(this.#kinds, kind, n)
    for (const [target, n] of other.#reached) this.#reach(target, n)
  }

  kinds(): Record<string, number> {
    return Object.fromEntries(this.#kinds)
  }

  asDropped(reason: Dropped['reason']): Dropped {
    const reached = this.#reached.size === 0 ? undefined : Object.fromEntries(this.#reached)
    return {
      kind: 'dropped',
      reason,
      count: this.#count,
      ...(this.#first !== undefined && { firstSeq: this.#first, lastSeq: this.#last }),
      kinds: this.kinds(),
      // Events whose records could not be written took no effect, so no target was reached.
      ...(reason === 'full' && reached !== undefined && { reached }),
    }
  }

  #reach(target: string, n: number): void {
    const isKnown = this.#reached.has(target) || this.#reached.size < MAX_REACHED
    raise(this.#reached, isKnown ? target : 'others', n)
  }
}

const raise = (map: Map<string, number>, key: string, n: number): void => {
  map.set(key, (map.get(key) ?? 0) + n)
}
