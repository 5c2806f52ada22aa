/** Why the gateway refuses: by a verdict of the policy, or because the bytes name another host or are ambiguous. */
import type { Denied } from '../policy/network/denial.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { showSource } from '../policy/source.ts'

/** Reasons of the policy and of the gateway. The audit and `x-pen-denied` show them. */
type RefusalReason =
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
  | 'not-opened'
  | 'secret-elsewhere'
  | 'secret-misplaced'
  | 'secret-removed'
  | 'not-signed'
  | 'not-exchanged'

export interface Refusal {
  readonly reason: RefusalReason
  /** Holds canonical names only, because programs and people read it. */
  readonly why: string
  readonly fix: string
  readonly rule?: string | undefined
  readonly from?: string | undefined
  /** The HTTP status of the reply. */
  readonly status?: number
  /** The request that was refused. */
  readonly request?: { readonly method: string; readonly path: string }
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
  why: `two servers could read this request differently: ${why}`,
  fix: 'send a request that follows RFC 9112',
  status,
})
