/** What the audit holds of files that the broker served, or did not. Paths come from a sandbox: hostile. */

export type FileOperation = 'stat' | 'list' | 'read' | 'write'

interface OfRequest {
  /** Numbers a request within its run, so that its records can be put together. */
  readonly request: number
  readonly op: FileOperation
  readonly path: string
}

export interface BrokerAllowed extends OfRequest {
  readonly kind: 'broker-allowed'
  /** The granted path. */
  readonly rule: string
}

export interface BrokerDenied extends OfRequest {
  readonly kind: 'broker-denied'
  /** A stable word: `GrantDenial`, or the broker's own such as `link`. */
  readonly reason: string
  readonly why?: string | undefined
  /** What denies it, and where that stands. */
  readonly rule?: string | undefined
  readonly from?: string | undefined
  /** The command that would allow it. */
  readonly fix?: string | undefined
}

/** A transfer is over, or what was allowed could not be done. */
export interface BrokerEnded extends OfRequest {
  readonly kind: 'broker-ended'
  readonly bytes: number
  readonly ms: number
  /** `done`, or why not: `revoked`, `expired`, `client`, `absent`… */
  readonly reason: string
}

export interface GrantsChanged {
  readonly kind: 'grants-changed'
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

export type BrokerEvent = BrokerAllowed | BrokerDenied | BrokerEnded | GrantsChanged
