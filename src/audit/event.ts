/**
 * The records of the audit: one per decision, in a versioned schema. Readers must ignore unknown fields and kinds. A
 * change of meaning raises the version.
 */
import type { Address } from '../policy/network/address.ts'
import type { Host } from '../policy/network/host.ts'
import type { Port } from '../policy/network/port.ts'
import type { BrokerEvent } from './broker-event.ts'
import type { GateEvent } from './gate-event.ts'

export const AUDIT_VERSION = 1

/** The destination of a connection: a name when the address is synthetic, else the address. */
export interface Target {
  /** Canonical. */
  readonly name?: Host | undefined
  /** An SNI or Host header that differs from the name. Hostile, so the sink escapes and caps it. */
  readonly raw?: string | undefined
  /** The address that was dialled upstream, or the literal address that the program dialled. */
  readonly address?: Address | undefined
  readonly port: Port
}

/** Identifies the connection within its run. All its records carry the number. */
interface OfConnection {
  readonly connection: number
}

export interface RunStart {
  readonly kind: 'run-start'
  /** `policyData()`: the policy with the source of each rule, without values that may be secret. */
  readonly policy: unknown
  readonly backend: string
  readonly pen: string
  readonly bun: string
  readonly kernel: string
  readonly os: string
}

export interface ConnectionAllowed extends Target, OfConnection {
  readonly kind: 'connection-allowed'
  /** The rule (`printRule`) and its source (`showSource`). */
  readonly rule: string
  readonly from?: string | undefined
}

/** No rule decides, and the user may answer until then. Another record with the same number has the outcome. */
export interface ConnectionHeld extends Target, OfConnection {
  readonly kind: 'connection-held'
  readonly until: string
}

export interface ConnectionDenied extends Target, OfConnection {
  readonly kind: 'connection-denied'
  /** A stable word: `DenialReason`, or one of the gateway, such as `sni-mismatch`. */
  readonly reason: string
  readonly why?: string | undefined
  readonly rule?: string | undefined
  readonly from?: string | undefined
  /** The command that would allow it. */
  readonly fix?: string | undefined
}

/** Allowed, but the upstream could not be resolved or reached. */
export interface ConnectionFailed extends Target, OfConnection {
  readonly kind: 'connection-failed'
  readonly reason: string
  readonly why?: string | undefined
  readonly ms?: number | undefined
}

export interface ConnectionClosed extends Target, OfConnection {
  readonly kind: 'connection-closed'
  readonly bytesUp: number
  readonly bytesDown: number
  readonly ms: number
  /** The side that closed it, or the cause: `client`, `upstream`, `idle`, `policy`, `limit`, `error`. */
  readonly reason: string
}

/** Queries that got no address: one record per reason and interval, with a count. */
export interface DnsRefused {
  readonly kind: 'dns-refused'
  readonly reason: 'malformed' | 'rate' | 'pool' | 'invalid-name'
  readonly count: number
  /** The name in the first query, if readable. Hostile. */
  readonly raw?: string | undefined
}

/** Refused UDP, or a TCP port that no rule opens: once per flow. */
export interface FlowRefused {
  readonly kind: 'flow-refused'
  readonly protocol: 'udp' | 'tcp'
  readonly name?: Host | undefined
  readonly address?: Address | undefined
  readonly port: Port
  readonly reason: string
  readonly fix?: string | undefined
}

/** A limit was reached: connections, memory, wall time, disk… */
export interface LimitHit {
  readonly kind: 'limit-hit'
  readonly limit: string
  readonly value?: string | undefined
  readonly reason?: string | undefined
  /** The limit in a sentence. */
  readonly why?: string | undefined
  readonly fix?: string | undefined
}

/** A file appeared at a protected place. Paths come from the sandbox and are hostile. */
export interface Quarantined {
  readonly kind: 'quarantine'
  readonly path: string
  readonly reason: string
  readonly to?: string | null | undefined
  readonly restored?: boolean | undefined
}

/** A denied place appeared, or the host replaced a protected one. The supervisor mounted over it again. */
export interface PlaceHeld {
  readonly kind: 'place-held'
  readonly path: string
  readonly how: 'cover' | 'protect'
  readonly held: boolean
  /** Why it is not held. */
  readonly reason?: string | undefined
}

/** A command started in a sandbox that stays. */
export interface ExecStart {
  readonly kind: 'exec-start'
  /** Identifies the command within its run. */
  readonly execution: number
  /** Shortened. The user typed it, but it is escaped like all texts. */
  readonly command: readonly string[]
  readonly cwd: string
  readonly terminal: boolean
}

export interface ExecEnd {
  readonly kind: 'exec-end'
  readonly execution: number
  readonly exitCode: number | null
  /** Why it ended early or never started: `timeout`, `client`, `stop`, `lost`, a signal or an error. */
  readonly reason?: string | undefined
  readonly ms: number
}

/** Programs of the host reach a port of the sandbox from now on, on the host's loopback. */
export interface ForwardStart {
  readonly kind: 'forward-start'
  readonly guest: number
  readonly host: number
}

export interface ForwardEnd {
  readonly kind: 'forward-end'
  readonly guest: number
  readonly host: number
  /** Forwarded connections, and those refused because of their user or a limit. */
  readonly connections: number
  readonly refused: number
  readonly ms: number
}

export interface PolicyChanged {
  readonly kind: 'policy-changed'
  /** Rules as in the config. Deny rules begin with `deny `. Connections that end for it have their own records. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Set when a temporary rule expired, and no file changed. */
  readonly reason?: 'expired' | undefined
}

export interface PolicyEditRefused {
  readonly kind: 'policy-edit-refused'
  readonly reason: string
  readonly at?: string | undefined
  readonly fix?: string | undefined
}

/** Something of this run stays on the host. It may come after `run-end`. */
export interface CleanupFailed {
  readonly kind: 'cleanup-failed'
  readonly what: string
  readonly why: string
  readonly fix: string
}

export interface RunEnd {
  readonly kind: 'run-end'
  readonly exitCode: number | null
  readonly signal?: string | undefined
  readonly reason?: string | undefined
  readonly ms?: number | undefined
  /** The number of records of each kind. The sink adds it. */
  readonly counts?: Readonly<Record<string, number>> | undefined
}

export type AuditEventInput =
  | RunStart
  | ConnectionAllowed
  | ConnectionHeld
  | ConnectionDenied
  | ConnectionFailed
  | ConnectionClosed
  | DnsRefused
  | FlowRefused
  | LimitHit
  | Quarantined
  | PlaceHeld
  | ExecStart
  | ExecEnd
  | ForwardStart
  | ForwardEnd
  | BrokerEvent
  | PolicyChanged
  | PolicyEditRefused
  | GateEvent
  | CleanupFailed
  | RunEnd

/** Written by the audit itself: records that were dropped or could not be written. Counts since the run began. */
export interface Dropped {
  readonly kind: 'dropped'
  readonly reason: 'full' | 'not-written'
  readonly count: number
  /** The dropped sequence numbers. Records that could not be written have none. */
  readonly firstSeq?: number | undefined
  readonly lastSeq?: number | undefined
  readonly kinds: Readonly<Record<string, number>>
  /** Targets in dropped `connection-allowed` and `broker-allowed` records, so that a flood cannot hide where bytes went. */
  readonly reached?: Readonly<Record<string, number>> | undefined
}

export type Verdict = 'allow' | 'hold' | 'deny' | 'error' | 'note'

/** The fields that pen adds to every record. */
export interface Stamp {
  readonly v: typeof AUDIT_VERSION
  /** Starts at 1, without gaps within a run. */
  readonly seq: number
  readonly time: string
  readonly sandbox: string
  readonly run: string
  readonly verdict: Verdict
  /** Set for a run in the soft backend. */
  readonly soft?: true
}

export type AuditEvent = AuditEventInput | Dropped
export type AuditKind = AuditEvent['kind']

/** Records decisions before they take effect. `record` throws on failure, and then the caller must not act. */
export interface AuditSink {
  record(event: AuditEventInput): void
}

const VERDICTS: Readonly<Record<AuditKind, Verdict>> = {
  'run-start': 'note',
  'connection-allowed': 'allow',
  'connection-held': 'hold',
  'connection-denied': 'deny',
  'connection-failed': 'error',
  'connection-closed': 'note',
  'dns-refused': 'deny',
  'flow-refused': 'deny',
  'limit-hit': 'error',
  quarantine: 'deny',
  'place-held': 'note',
  'exec-start': 'note',
  'exec-end': 'note',
  'forward-start': 'note',
  'forward-end': 'note',
  'broker-allowed': 'allow',
  'broker-denied': 'deny',
  'broker-ended': 'note',
  'grants-changed': 'note',
  'policy-changed': 'note',
  'policy-edit-refused': 'error',
  'cleanup-failed': 'error',
  'file-allowed': 'allow',
  'file-denied': 'deny',
  'tool-allowed': 'allow',
  'tool-denied': 'deny',
  'tool-ended': 'note',
  'run-end': 'note',
  dropped: 'error',
}

export const verdictOf = (event: AuditEvent): Verdict => VERDICTS[event.kind]
