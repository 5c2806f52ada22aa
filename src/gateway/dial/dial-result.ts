/** The result of a dial. In a failure, the policy allowed the connection and the server or network failed. */

import type { Address } from '../../policy/network/address.ts'
import type { Denied } from '../../policy/network/denial.ts'
import type { ByteStream } from '../stream/byte-stream.ts'

export type FailureReason =
  | 'name-not-found'
  | 'lookup-failed'
  | 'upstream-unreachable'
  | 'upstream-timeout'
  | 'upstream-proxy'
  | 'upstream-certificate'
  | 'upstream-tls'
  | 'out-of-descriptors'
  | 'given-up'

export interface DialFailure {
  readonly kind: 'failed'
  readonly reason: FailureReason
  readonly why: string
}

export type DialResult =
  | { readonly kind: 'connected'; readonly stream: ByteStream; readonly address: Address | undefined }
  | { readonly kind: 'denied'; readonly denied: Denied }
  | DialFailure

/** The caller may cancel a dial. Not an AbortController, because every connection has one and pays for it. */
export class Cancellation {
  isCancelled: boolean = false
  onCancel: (() => void) | undefined

  cancel(): void {
    if (this.isCancelled) return
    this.isCancelled = true
    this.onCancel?.()
  }
}

export const failed = (reason: FailureReason, why: string): DialFailure => ({ kind: 'failed', reason, why })
