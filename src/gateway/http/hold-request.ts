/**
 * Holds a request that no rule names until the user answers. It is refused or sent afterwards like any other. Its host
 * has rules about requests already, so the user is asked about method and path.
 */
import { decideRequest, requestRule } from '../../policy/network/decide-request.ts'
import { waitsForAnswer } from '../../policy/network/holdable.ts'
import { printRule } from '../../policy/network/net-rule.ts'
import { readRequestPath } from '../../policy/network/request-path.ts'
import { awaitAnswer } from '../admit.ts'
import type { GatewayContext } from '../gateway-context.ts'
import type { Waiter } from '../holds.ts'
import type { Route } from '../route.ts'
import type { Outgoing } from './outgoing.ts'

/** Undefined when the request may be judged: it never waited, or an answer came. */
export async function holdRequest(
  shared: GatewayContext,
  client: Waiter,
  route: Route,
  { method, path }: { readonly method: string; readonly path: string },
): Promise<Exclude<Outgoing, { readonly kind: 'forward' }> | undefined> {
  if (shared.network().ask !== 'hold') return undefined
  const read = readRequestPath(path)
  if (!read.ok) return undefined
  const line = { method, ...read.value }
  const { to } = route.endpoint
  const judge = () => {
    const verdict = route.verdict()
    const denied = verdict.ok ? decideRequest(verdict, line) : verdict
    // Only what can wait is decided here. `judgeOutgoing` has the last word.
    if (!verdict.ok || denied.ok) return DECIDED
    const rule = requestRule(verdict.dial, line)
    const waits = rule !== undefined && waitsForAnswer(shared.network(), denied, to, rule)
    return waits ? { kind: 'undecided' as const, denied } : DECIDED
  }
  const verdict = route.verdict()
  const rule = verdict.ok ? requestRule(verdict.dial, line) : undefined
  if (rule === undefined) return undefined
  const request = { method, path: line.exact }
  const about = { endpoint: route.endpoint, target: printRule(rule), connection: route.number, request }
  const answered = await awaitAnswer(shared, client, about, judge)
  if (answered.kind === 'denied') return { kind: 'refused', refusal: { ...answered.refusal, request } }
  return answered.kind === 'unrecorded' ? answered : undefined
}

const DECIDED = { kind: 'allowed' } as const
