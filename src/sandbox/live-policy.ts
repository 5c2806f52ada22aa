/**
 * The user's live config while a sandbox runs. An edit takes effect as one change, or not at all: a broken one keeps the
 * policy that was in force, and says why. Only files outside every sandbox's reach are watched.
 */
import type { AuditSink } from '../audit/event.ts'
import { PenError, showPlace } from '../base/error.ts'
import { type Loaded, type LoadOptions, loadPolicy } from '../config/load.ts'
import { printRule } from '../policy/net-rule.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import { liveState } from './live-files.ts'

const INTERVAL_MS = 250

export interface LivePolicyOptions {
  readonly loaded: Loaded
  /** `liveState` from before it was loaded. */
  readonly seen: string
  readonly load: LoadOptions
  readonly audit: AuditSink
  /** Puts the new network policy in force; returns how many connections that ended. */
  readonly change: (network: NetworkPolicy) => number
  readonly tell: (line: string) => void
  /** Something that is no mistake of the user's: the keeper cannot go on. */
  readonly fail: (error: unknown) => void
}

export class LivePolicy {
  readonly #options: LivePolicyOptions
  readonly #timer: ReturnType<typeof setInterval>
  #state: string
  #network: NetworkPolicy
  #isLoading: boolean = false

  constructor(options: LivePolicyOptions) {
    this.#options = options
    this.#network = options.loaded.policy.network
    this.#state = options.seen
    this.#timer = setInterval(() => void this.check().catch(options.fail), INTERVAL_MS)
    this.#timer.unref()
  }

  /** Looks once; also called by the timer. */
  async check(): Promise<void> {
    if (this.#isLoading) return
    const state = liveState(this.#options.loaded.project.stateDir)
    if (state === this.#state) return
    this.#isLoading = true
    try {
      await this.#reload()
      // What was there before the read is what was read, or an edit came in between: then the next look sees it.
      this.#state = state
    } finally {
      this.#isLoading = false
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #reload(): Promise<void> {
    const { loaded, load, audit, change, tell } = this.#options
    try {
      const { policy } = await loadPolicy(loaded.project, { ...load, untrusted: loaded.untrusted })
      const before = rulesOf(this.#network)
      const after = rulesOf(policy.network)
      audit.record({
        kind: 'policy-changed',
        added: [...after].filter(rule => !before.has(rule)),
        removed: [...before].filter(rule => !after.has(rule)),
      })
      this.#network = policy.network
      change(policy.network)
    } catch (error) {
      if (!(error instanceof PenError)) throw error
      const at = error.at === undefined ? undefined : showPlace(error.at)
      audit.record({ kind: 'policy-edit-refused', reason: error.message, at, cure: error.hint })
      tell(
        `policy: an edit was not taken, the policy before it stays in force: ${error.message}${at === undefined ? '' : ` (${at})`}`,
      )
    }
  }
}

const rulesOf = ({ allow, deny }: NetworkPolicy): ReadonlySet<string> =>
  new Set([...allow.map(({ rule }) => printRule(rule)), ...deny.map(({ rule }) => `deny ${printRule(rule)}`)])
