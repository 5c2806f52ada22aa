/** Tells the user and the audit which limits a sandbox reached. */
import type { Audit } from '../../audit/append.ts'
import type { RefusalTally } from '../../audit/refusals.ts'
import { describeHit, isWorthReporting, type LimitHit, raiseLimit } from '../../limits/limit-hit.ts'

export class LimitReports {
  readonly #audit: Audit
  readonly #refusals: RefusalTally
  readonly #lines: string[]
  readonly #recorded = new Set<string>()

  constructor(audit: Audit, refusals: RefusalTally, lines: string[]) {
    this.#audit = audit
    this.#refusals = refusals
    this.#lines = lines
  }

  /** While the sandbox runs. A command of a sandbox that stays reports the hit at its own end. */
  during(hit: LimitHit): void {
    this.#record(hit)
    if (isWorthReporting(hit)) this.#refusals.note(tellHit(hit))
  }

  /** Returns those that the user should know. */
  atEnd(hits: readonly LimitHit[]): readonly LimitHit[] {
    const worth = hits.filter(isWorthReporting)
    for (const hit of worth) {
      this.#record(hit)
      this.#lines.push(tellHit(hit))
    }
    return worth
  }

  /** Recorded before the kill: a client looks for the reason as soon as its command has ended. */
  beforeWall(wall: number): void {
    const hit: LimitHit = { limit: 'wall', what: 'killed', used: wall, bound: wall, amount: 1 }
    this.#record(hit)
    this.#lines.push(tellHit(hit))
    this.#refusals.note(tellHit(hit))
  }

  /** Each hit once: some are seen during the run and again in the final counters. */
  #record(hit: LimitHit): void {
    const event = `${hit.limit} ${hit.what}`
    if (this.#recorded.has(event)) return
    this.#audit.record({ kind: 'limit-hit', ...recordOf(hit) })
    this.#recorded.add(event)
  }
}

const tellHit = (hit: LimitHit): string => `limit: ${describeHit(hit)}; to raise it: ${raiseLimit(hit)}`

const recordOf = (hit: LimitHit) => ({
  limit: hit.limit,
  value: `${hit.used} of ${hit.bound}`,
  reason: hit.what,
  why: describeHit(hit),
  fix: raiseLimit(hit),
})
