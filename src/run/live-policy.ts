/**
 * The user's live config while a sandbox runs. An edit takes effect as one change, or not at all: a broken edit keeps the old policy and is
 * reported. Only files that no sandbox can reach are watched. A grant for a limited time ends by the clock, whatever the files say.
 */
import type { AuditSink } from '../audit/event.ts'
import { PenError, showPlace } from '../base/error.ts'
import { grantFiles } from '../config/grants/grant-files.ts'
import { removeGrants } from '../config/grants/network-grants.ts'
import { type Loaded, type LoadOptions, loadPolicy } from '../config/load.ts'
import { type DenyRule, printRule } from '../policy/network/net-rule.ts'
import { nextExpiry, withoutExpired } from '../policy/network/once-rules.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import type { Sourced } from '../policy/source.ts'
import { liveState } from './live-files.ts'

const INTERVAL_MS = 250
/** The longest delay of a timer. For longer delays the timer is set again. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface LivePolicyOptions {
  readonly loaded: Loaded
  /** `liveState` from before the policy was loaded. */
  readonly seen: string
  readonly load: LoadOptions
  /** The run of this session: grants for the session end with it. */
  readonly run: string
  readonly audit: AuditSink
  /** Puts the new network policy in force; returns how many connections that ended. */
  readonly change: (network: NetworkPolicy) => number
  readonly tell: (line: string) => void
  /** Called for an error that is not the user's: the supervisor cannot go on. */
  readonly fail: (error: unknown) => void
}

export class LivePolicy {
  readonly #options: LivePolicyOptions
  readonly #timer: ReturnType<typeof setInterval>
  #state: string
  #network: NetworkPolicy
  #isLoading: boolean = false
  #expiry: ReturnType<typeof setTimeout> | undefined

  constructor(options: LivePolicyOptions) {
    this.#options = options
    this.#network = options.loaded.policy.network
    this.#state = options.seen
    this.#timer = setInterval(() => void this.check().catch(options.fail), INTERVAL_MS)
    this.#timer.unref()
    this.#awaitExpiry()
  }

  /** Looks for an edit once. The timer calls it too. */
  async check(): Promise<void> {
    this.#expire()
    if (this.#isLoading) return
    const state = liveState(this.#options.loaded.project.shared.stateDir)
    if (state === this.#state) return
    this.#isLoading = true
    try {
      await this.#reload()
      // The state from before the read: an edit in between is noticed at the next look.
      this.#state = state
    } finally {
      this.#isLoading = false
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    clearTimeout(this.#expiry)
    const { loaded, run } = this.#options
    if (grantFiles(loaded.project.shared.stateDir).length === 0) return
    // The id is unique: a grant that cannot be removed now has no effect later.
    await removeGrants(loaded.project.shared.stateDir, grant => grant.run === run).catch(() => [])
  }

  /** Called at each look too: a timer misses its time while the machine sleeps. */
  #expire(): void {
    const next = nextExpiry(this.#network)
    if (next === undefined || next > Date.now()) return
    this.#putInForce(withoutExpired(this.#network, Date.now()), 'expired')
  }

  #awaitExpiry(): void {
    clearTimeout(this.#expiry)
    const next = nextExpiry(this.#network)
    if (next === undefined) return
    this.#expiry = setTimeout(
      () => {
        try {
          this.#expire()
          this.#awaitExpiry()
        } catch (error) {
          this.#options.fail(error)
        }
      },
      Math.min(Math.max(next - Date.now(), 1), LONGEST_TIMER_MS),
    )
    this.#expiry.unref()
  }

  #putInForce(network: NetworkPolicy, reason?: 'expired'): void {
    const before = rulesOf(this.#network)
    const after = rulesOf(network)
    this.#options.audit.record({
      kind: 'policy-changed',
      added: [...after].filter(rule => !before.has(rule)),
      removed: [...before].filter(rule => !after.has(rule)),
      reason,
    })
    this.#network = network
    this.#options.change(network)
    this.#awaitExpiry()
  }

  async #reload(): Promise<void> {
    const { loaded, load, run, audit, tell } = this.#options
    try {
      const { policy } = await loadPolicy(loaded.project, {
        ...load,
        untrusted: loaded.untrusted,
        grants: { run },
      })
      this.#putInForce(policy.network)
    } catch (error) {
      if (!(error instanceof PenError)) throw error
      const at = error.at === undefined ? undefined : showPlace(error.at)
      audit.record({ kind: 'policy-edit-refused', reason: error.message, at, fix: error.hint })
      tell(
        `policy: an edit was refused, the old policy stays in force: ${error.message}${at === undefined ? '' : ` (${at})`}`,
      )
    }
  }
}

function rulesOf({ allow, deny, once, secrets }: NetworkPolicy): ReadonlySet<string> {
  const texts = (sign: string, rules: readonly Sourced<DenyRule>[]): string[] =>
    rules.map(({ rule }) => `${sign}${printRule(rule)}`)
  return new Set([
    ...texts('', allow),
    ...texts('deny ', deny),
    ...texts('once ', once.allow),
    ...texts('deny once ', once.deny),
    ...secrets.map(({ rule }) => `secret ${rule.name}`),
  ])
}
