/**
 * Asks the user about a host before any program dials it. A program of the user, or the model behind it, sends the
 * question. It is recorded and answered like a held connection, and changes nothing by itself.
 */

import { judge, recordHeld, targetOf } from './admit.ts'
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
  let close: ((ms: number) => void) | undefined
  for (;;) {
    const judged = judge(shared, endpoint, () => true)
    const allowed = judged.kind === 'allowed'
    if (allowed || performance.now() - began >= ms || isGone()) {
      close?.(Math.round(performance.now() - began))
      const { reason, why, fix } = allowed ? NO_REFUSAL : refusalOf(judged.denied)
      return { allowed, shown: close !== undefined, reason, why, fix }
    }
    if (judged.kind === 'undecided') close ??= show(shared, endpoint, ms)
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}

const NO_REFUSAL = { reason: null, why: null, fix: null }

/** Returns a function that records the end of the question. Undefined when too many wait, or the audit cannot be written. */
function show(shared: GatewayContext, endpoint: Endpoint, ms: number): ((ms: number) => void) | undefined {
  const target = targetOf(endpoint)
  if (!shared.holds.hasRoom(target) || !shared.mayDeny()) return undefined
  const connection = recordHeld(shared, endpoint, { ms })
  if (connection === undefined) return undefined
  const leave = shared.holds.enter(target)
  return ms => {
    leave()
    // Nothing was dialled.
    const none = { bytesUp: 0, bytesDown: 0, ms, reason: 'asked' }
    shared.record({ kind: 'connection-closed', connection, ...auditTarget(endpoint), ...none })
  }
}
