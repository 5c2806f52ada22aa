/**
 * A question for a person that no connection waits for yet: a program of theirs, or the model behind it, asks before it dials. It is
 * written down and answered like a connection that is held, and like one it changes nothing by itself.
 */

import { decideConnection } from '../policy/network/decide-connection.ts'
import { waitsForAnswer } from '../policy/network/holdable.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { exactRule, findOnce } from '../policy/network/once-rules.ts'
import type { GatewayContext } from './gateway-context.ts'
import { refusalOf } from './refusal.ts'
import { auditTarget, type Endpoint } from './route.ts'

export interface UserAnswer {
  readonly allowed: boolean
  /** Whether somebody was shown the question, in `pen watch`. */
  readonly shown: boolean
  readonly reason: string | null
  readonly why: string | null
  /** What the person would have to run. */
  readonly fix: string | null
}

export interface AskOptions {
  readonly ms: number
  /** Whoever asked may be gone. */
  readonly isGone: () => boolean
}

const LOOK_MS = 100

/** Until it is allowed, or the time is over. Where the policy lets nobody be asked, a change of it still counts. */
export async function askUser(
  shared: GatewayContext,
  endpoint: Endpoint,
  { ms, isGone }: AskOptions,
): Promise<UserAnswer> {
  const began = performance.now()
  let shown: Shown | undefined
  for (;;) {
    const judged = judge(shared, endpoint)
    const isLate = performance.now() - began >= ms || isGone()
    if (judged.allowed || isLate) {
      if (shown !== undefined) close(shared, endpoint, shown, Math.round(performance.now() - began))
      return { ...judged, shown: shown !== undefined }
    }
    if (shown === undefined && judged.canBeAsked) shown = show(shared, endpoint, ms)
    await new Promise(resolve => setTimeout(resolve, LOOK_MS))
  }
}

function judge(shared: GatewayContext, { to, port }: Endpoint) {
  const network = shared.network()
  const verdict = decideConnection(network.index, to, port)
  const once = findOnce(network.once.allow, to, port, id => shared.spent.has(id))
  if (verdict.ok || (once !== undefined && verdict.reason !== 'denied-by-rule'))
    return { allowed: true, reason: null, why: null, fix: null, canBeAsked: false }
  const { reason, why } = refusalOf(verdict)
  const canBeAsked = waitsForAnswer(network, verdict, to, port)
  return { allowed: false, reason, why, fix: verdict.fix, canBeAsked }
}

interface Shown {
  readonly number: number
  readonly leave: () => void
}

/** Undefined where too many wait already, or it cannot be written down: then nobody is shown it. */
function show(shared: GatewayContext, endpoint: Endpoint, ms: number): Shown | undefined {
  const target = printRule(exactRule(endpoint.to, endpoint.port))
  if (!shared.holds.hasRoom(target) || !shared.mayDeny()) return undefined
  const number = shared.nextNumber()
  const until = new Date(Date.now() + ms).toISOString()
  const event = { kind: 'connection-held', connection: number, ...auditTarget(endpoint), until } as const
  return shared.record(event) ? { number, leave: shared.holds.occupy(target) } : undefined
}

/** Nothing was dialled: it is only over. */
function close(shared: GatewayContext, endpoint: Endpoint, { number, leave }: Shown, ms: number): void {
  leave()
  const none = { bytesUp: 0, bytesDown: 0, ms, reason: 'asked' }
  shared.record({ kind: 'connection-closed', connection: number, ...auditTarget(endpoint), ...none })
}
