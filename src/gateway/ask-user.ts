/**
 * Asks the user about a host before any program dials it. A program of the user, or the model behind it, sends the
 * question. It is recorded and answered like a held connection, and changes nothing by itself.
 */

import { decideConnection, exactRule } from '../policy/network/decide-connection.ts'
import { waitsForAnswer } from '../policy/network/holdable.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { findOnce } from '../policy/network/once-rules.ts'
import type { GatewayContext } from './gateway-context.ts'
import { refusalOf } from './refusal.ts'
import { auditTarget, type Endpoint } from './route.ts'

export interface UserAnswer {
  readonly allowed: boolean
  /** Whether `pen watch` showed the question. */
  readonly shown: boolean
  readonly reason: string | null
  readonly why: string | null
  /** The command that would allow it. */
  readonly fix: string | null
}

export interface AskOptions {
  readonly ms: number
  /** True when the caller no longer waits. */
  readonly isGone: () => boolean
}

const POLL_MS = 100

/** Waits until the host is allowed or the time is over. A policy change counts even when the policy asks no one. */
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
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
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

/** Undefined when too many questions wait already, or the audit cannot be written. */
function show(shared: GatewayContext, endpoint: Endpoint, ms: number): Shown | undefined {
  const target = printRule(exactRule(endpoint.to, endpoint.port))
  if (!shared.holds.hasRoom(target) || !shared.mayDeny()) return undefined
  const number = shared.nextNumber()
  const until = new Date(Date.now() + ms).toISOString()
  const event = { kind: 'connection-held', connection: number, ...auditTarget(endpoint), until } as const
  return shared.record(event) ? { number, leave: shared.holds.occupy(target) } : undefined
}

/** Records the end of the question. Nothing was dialled. */
function close(shared: GatewayContext, endpoint: Endpoint, { number, leave }: Shown, ms: number): void {
  leave()
  const none = { bytesUp: 0, bytesDown: 0, ms, reason: 'asked' }
  shared.record({ kind: 'connection-closed', connection: number, ...auditTarget(endpoint), ...none })
}
