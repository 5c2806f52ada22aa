/** Why the gateway said no: the policy's verdict, or its own when the bytes name someone else or cannot be trusted. */
import type { Denied } from '../policy/network/denial.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { showSource } from '../policy/source.ts'

/** Words of the gateway's own, beside `DenialReason`. They are in the audit and in `x-pen-denied`. */
export type RefusalReason =
  | Denied['reason']
  | 'sni-missing'
  | 'sni-mismatch'
  | 'bad-hello'
  | 'host-mismatch'
  | 'bad-request'
  | 'refused-protocol'
  | 'not-a-proxy-request'
  | 'not-answered'
  | 'hung-up'
  | 'too-many-held'

export interface Refusal {
  readonly reason: RefusalReason
  /** Canonical names only: this is shown to the program, and to people. */
  readonly why: string
  readonly fix: string
  readonly rule?: string | undefined
  readonly from?: string | undefined
  /** What an HTTP client is told. */
  readonly status?: number
}

export const refusalOf = (denied: Denied): Refusal => ({
  reason: denied.reason,
  why: denied.why,
  fix: denied.fix,
  rule: denied.rule === undefined ? undefined : printRule(denied.rule),
  from: denied.source === undefined ? undefined : showSource(denied.source),
})

export const badRequest = (why: string, status = 400): Refusal => ({
  reason: 'bad-request',
  why: `the request is one that two servers could read differently: ${why}`,
  fix: 'send a request as RFC 9112 writes it',
  status,
})
