/**
 * Decides whether a connection may be made, now or after the user answers. While the connection is held, the gateway
 * dials nothing and looks up no name. The answer is a policy change, which no program in a sandbox can make.
 */

import { allowedBy, decideConnection, exactRule } from '../policy/network/decide-connection.ts'
import { type DenialReason, type Denied, denyByRule } from '../policy/network/denial.ts'
import { waitsForAnswer } from '../policy/network/holdable.ts'
import { type DenyRule, printRule } from '../policy/network/net-rule.ts'
import { findOnce } from '../policy/network/once-rules.ts'
import type { Sourced } from '../policy/source.ts'
import type { GatewayContext } from './gateway-context.ts'
import type { Waiter } from './holds.ts'
import { type Refusal, refusalOf } from './refusal.ts'
import { type Admitted, auditTarget, type Endpoint } from './route.ts'

export type Admission = Answered<{ readonly kind: 'allowed' } & Omit<Admitted, 'number'>>

type Answered<A> =
  | (A & Pick<Admitted, 'number'>)
  | { readonly kind: 'denied'; readonly refusal: Refusal; readonly number: number | undefined }
  /** The audit could not be written. */
  | { readonly kind: 'unrecorded' }

interface Undecided {
  readonly kind: 'denied' | 'undecided'
  readonly denied: Denied
}

type Judgement = ({ readonly kind: 'allowed' } & Omit<Admitted, 'number'>) | Undecided

/** Only these denials are final. */
const FINAL: ReadonlySet<DenialReason> = new Set(['offline', 'network-off', 'denied-by-rule'])

/** Undefined while the answer may still be yes. Consumes no grant. */
export function plainDenial(shared: GatewayContext, endpoint: Endpoint): Denied | undefined {
  let matchesGrant: boolean = false
  const judged = judge(shared, endpoint, () => {
    matchesGrant = true
    return true
  })
  // A grant for one connection is consumed later, just before the connection is made.
  return judged.kind === 'denied' && !matchesGrant ? judged.denied : undefined
}

export const admit = (shared: GatewayContext, client: Waiter, endpoint: Endpoint): Promise<Admission> =>
  awaitAnswer(shared, client, { endpoint, target: targetOf(endpoint) }, () =>
    judge(shared, endpoint, rule => shared.claim(rule)),
  )

/** What the user is asked: a connection, or a request of one. */
interface Question extends Pick<HeldRecord, 'request' | 'connection'> {
  readonly endpoint: Endpoint
  /** The rule that would decide. Equal questions are counted by it. */
  readonly target: string
}

/** Asks `judge`, and while it is undecided waits for a change of the policy. */
export async function awaitAnswer<A extends { readonly kind: 'allowed' }>(
  shared: GatewayContext,
  client: Waiter,
  { endpoint, target, ...about }: Question,
  judge: () => A | Undecided,
): Promise<Answered<A>> {
  const ms = shared.network().hold
  let held: { readonly number: number; readonly until: number } | undefined
  for (;;) {
    const judged = judge()
    if (judged.kind === 'allowed') return { ...judged, number: held?.number }
    const denied = (refusal: Refusal): Answered<A> => ({ kind: 'denied', refusal, number: held?.number })
    if (judged.kind === 'denied') return denied(refusalOf(judged.denied))
    if (held === undefined) {
      if (!shared.holds.hasRoom(target))
        return denied(
          heldDenial(judged.denied, 'too-many-held', 'too many connections already wait for an answer'),
        )
      // Each hold writes two records, so holds share the rate limit of denials.
      if (!shared.mayDeny()) return denied(refusalOf(judged.denied))
      const number = recordHeld(shared, endpoint, { ms, ...about })
      if (number === undefined) return { kind: 'unrecorded' }
      held = { number, until: performance.now() + ms }
    }
    const end = await shared.holds.wait(client, target, held.until)
    if (end === 'timeout') {
      const within = `no one answered within ${Math.round(ms / 100) / 10} s`
      return denied(heldDenial(judged.denied, 'not-answered', within))
    }
    if (end === 'closed')
      return denied(
        heldDenial(judged.denied, 'hung-up', 'the program closed the connection before an answer came'),
      )
  }
}

/** `take` consumes a rule for one connection. It returns false when another connection has it. */
export function judge(
  shared: GatewayContext,
  { to, port }: Endpoint,
  take: (rule: Sourced<DenyRule>) => boolean,
): Judgement {
  const network = shared.network()
  const verdict = decideConnection(network.index, to, port)
  if (!verdict.ok && FINAL.has(verdict.reason)) return { kind: 'denied', denied: verdict }
  const taken = <R extends DenyRule>(rules: readonly Sourced<R>[]): Sourced<R> | undefined => {
    for (;;) {
      const found = findOnce(rules, to, port, id => shared.spent.has(id))
      if (found === undefined || take(found)) return found
    }
  }
  const refusing = taken(network.once.deny)
  if (refusing !== undefined) {
    // The one-time denial is consumed, so `pen forget` has nothing to remove. The fix is an allow rule.
    const fix = `pen allow ${printRule(exactRule(to, port))}`
    return { kind: 'denied', denied: { ...denyByRule(refusing), fix } }
  }
  if (verdict.ok) return { kind: 'allowed', allowed: verdict, once: undefined }
  const once = taken(network.once.allow)
  if (once !== undefined) return { kind: 'allowed', allowed: allowedBy(once, to, port), once }
  const isHeld = waitsForAnswer(network, verdict, to, exactRule(to, port))
  return { kind: isHeld ? 'undecided' : 'denied', denied: verdict }
}

/** The rule that would decide on this endpoint. Held connections are counted by it. */
export const targetOf = ({ to, port }: Endpoint): string => printRule(exactRule(to, port))

const heldDenial = (denied: Denied, reason: Refusal['reason'], end: string): Refusal => ({
  ...refusalOf(denied),
  reason,
  why: `${denied.why}, and ${end}`,
})

interface HeldRecord {
  readonly ms: number
  /** The connection's own number, if it has one. */
  readonly connection?: number
  readonly request?: NonNullable<Refusal['request']>
}

/** Records that an answer is awaited, and returns its number. Undefined when the audit could not be written. */
export function recordHeld(
  shared: GatewayContext,
  endpoint: Endpoint,
  { ms, connection = shared.nextNumber(), request }: HeldRecord,
): number | undefined {
  const until = new Date(Date.now() + ms).toISOString()
  const about = { ...auditTarget(endpoint), ...request }
  const isRecorded = shared.record({ kind: 'connection-held', connection, ...about, until })
  return isRecorded ? connection : undefined
}
