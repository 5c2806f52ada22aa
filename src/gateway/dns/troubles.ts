import type { AuditSink, DnsRefused } from '../../audit/event.ts'

type Reason = DnsRefused['reason']

/** The first of a kind is recorded at once, the rest of it counted and told once in this time. */
const INTERVAL_MS = 10_000

/** Queries that got no address, told without letting a flood of them flood the audit. */
export class DnsTroubles {
  readonly #audit: AuditSink
  readonly #counts = new Map<Reason, number>()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(audit: AuditSink) {
    this.#audit = audit
  }

  add(reason: Reason, raw?: string): void {
    const count = this.#counts.get(reason)
    if (count !== undefined) {
      this.#counts.set(reason, count + 1)
      return
    }
    this.#counts.set(reason, 0)
    this.#tell(reason, 1, raw)
    this.#timer ??= setTimeout(() => this.flush(), INTERVAL_MS)
    this.#timer.unref()
  }

  /** Call it a last time when the sandbox has ended. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const [reason, count] of this.#counts) if (count > 0) this.#tell(reason, count)
    this.#counts.clear()
  }

  #tell(reason: Reason, count: number, raw?: string): void {
    try {
      this.#audit.record({ kind: 'dns-refused', reason, count, raw })
    } catch {
      // The query was refused already and nothing follows from it. The audit counts what it could not write.
    }
  }
}
