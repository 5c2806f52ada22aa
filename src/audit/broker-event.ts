/** Records of the file broker. Paths come from a sandbox and are hostile. */

export type FileOperation = 'stat' | 'list' | 'read' | 'write'

interface OfRequest {
  /** Identifies the request within its run. All its records carry it. */
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
  /** A stable word: `GrantDenial`, or one of the broker, such as `link`. */
  readonly reason: string
  readonly why?: string | undefined
  /** The rule that denies it, and its source. */
  readonly rule?: string | undefined
  readonly from?: string | undefined
  /** The command that would allow it. */
  readonly fix?: string | undefined
}

/** A transfer ended, or an allowed operation failed. */
export interface BrokerEnded extends OfRequest {
  readonly kind: 'broker-ended'
  readonly bytes: number
  readonly ms: number
  /** `done`, or the reason of the failure: `revoked`, `expired`, `client`, `absent`… */
  readonly reason: string
}

export interface GrantsChanged {
  readonly kind: 'grants-changed'
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

export type BrokerEvent = BrokerAllowed | BrokerDenied | BrokerEnded | GrantsChanged
