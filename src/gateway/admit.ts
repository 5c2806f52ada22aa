/**
 * Whether a connection may be made, now or after a person was asked. While it is held nothing is dialled and no name is
 * looked up; the answer comes as a change of the policy, which no program in a sandbox can make.
 */

import { type Allowed, decideConnection } from '../policy/network/decide-connection.ts'
import { type DenialReason, type Denied, denyByRule } from '../policy/network/denial.ts'
import { waitsForAnswer } from '../policy/network/holdable.ts'
import { type AllowRule, type DenyRule, printRule } from '../policy/network/net-rule.ts'
import { allowedBy, exactRule, findOnce } from '../policy/network/once-rules.ts'
import type { Sourced } from '../policy/source.ts'
import type { GatewayContext } from './gateway-context.ts'
import { type Refusal, refusalOf } from './refusal.ts'
import { auditTarget, type Endpoint } from './route.ts'
import type { ByteStream } from './stream/byte-stream.ts'

export type Admission =
  | {
      readonly kind: 'allowed'
      readonly allowed: Allowed
      /** The grant that this connection has used up. */
      readonly once: Sourced<AllowRule> | undefined
      /** Its number in the audit, where it has one. */
      readonly number: number | undefined
    }
  | { readonly kind: 'denied'; readonly refusal: Refusal; readonly number: number | undefined }
  /** It could not be written down. */
  | { readonly kind: 'unrecorded' }

type Judgement =
  | { readonly kind: 'allowed'; readonly allowed: Allowed; readonly once: Sourced<AllowRule> | undefined }
  | { readonly kind: 'denied' | 'undecided'; readonly denied: Denied }

/** No more than these is somebody's last word. */
const FINAL: ReadonlySet<DenialReason> = new Set(['offline', 'network-off', 'denied-by-rule'])

/** Undefined while the answer may still be yes. Nothing is used up. */
export function plainDenial(shared: GatewayContext, endpoint: Endpoint): Denied | undefined {
  let isMet: boolean = false
  const judged = judge(shared, endpoint, () => {
    isMet = true
    return true
  })
  // What is for one connection is met, and used up, where the connection is about to be made.
  return judged.kind === 'denied' && !isMet ? judged.denied : undefined
}

export async function admit(
  shared: GatewayContext,
  client: ByteStream,
  endpoint: Endpoint,
): Promise<Admission> {
  let held: { readonly number: number; readonly until: number; readonly ms: number } | undefined
  for (;;) {
    const judged = judge(shared, endpoint, rule => shared.claim(rule))
    if (judged.kind === 'allowed') return { ...judged, number: held?.number }
    const denied = (refusal: Refusal): Admission => ({ kind: 'denied', refusal, number: held?.number })
    if (judged.kind === 'denied') return denied(refusalOf(judged.denied))
    const target = printRule(exactRule(endpoint.to, endpoint.port))
    if (held === undefined) {
      if (!shared.holds.hasRoom(target)) return denied(tooMany(judged.denied))
      // Each hold leaves two records: a flood of them is bounded as denials are.
      if (!shared.mayDeny()) return denied(refusalOf(judged.denied))
      const ms = shared.network().hold
      held = { number: shared.nextNumber(), until: performance.now() + ms, ms }
      const until = new Date(Date.now() + ms).toISOString()
      if (
        !shared.record({ kind: 'connection-held', connection: held.number, ...auditTarget(endpoint), until })
      )
        return { kind: 'unrecorded' }
    }
    const end = await shared.holds.wait(client, target, held.until)
    if (end === 'late') return denied(notAnswered(judged.denied, held.ms))
    if (end === 'gone') return denied(hungUp(judged.denied))
  }
}

function judge(
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
    // It is used up: nothing is left to be forgotten, and the next one is judged without it.
    const fix = `pen allow ${printRule(exactRule(to, port))}`
    return { kind: 'denied', denied: { ...denyByRule(refusing), fix } }
  }
  if (verdict.ok) return { kind: 'allowed', allowed: verdict, once: undefined }
  const once = taken(network.once.allow)
  if (once !== undefined) return { kind: 'allowed', allowed: allowedBy(once, to, port), once }
  const isHeld = waitsForAnswer(network, verdict, to, port)
  return { kind: isHeld ? 'undecided' : 'denied', denied: verdict }
}

const notAnswered = (denied: Denied, ms: number): Refusal => ({
  ...refusalOf(denied),
  reason: 'not-answered',
  why: `${denied.why}, and nobody answered within ${Math.round(ms / 100) / 10} s`,
})

const hungUp = (denied: Denied): Refusal => ({
  ...refusalOf(denied),
  reason: 'hung-up',
  why: `${denied.why}, and the program hung up before anybody answered`,
})

const tooMany = (denied: Denied): Refusal => ({
  ...refusalOf(denied),
  reason: 'too-many-held',
  why: `${denied.why}, and too many connections wait for an answer already`,
})
