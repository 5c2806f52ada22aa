/**
 * What the audit holds: one record per decision, in a schema with a version. Readers must ignore fields and kinds that
 * they do not know; a change of meaning raises the version.
 */
import type { Address } from '../policy/network/address.ts'
import type { Host } from '../policy/network/host.ts'
import type { Port } from '../policy/network/port.ts'
import type { BrokerEvent } from './broker-event.ts'
import type { GateEvent } from './gate-event.ts'

export const AUDIT_VERSION = 1

/** Whom a connection is for. A name when a look-up handed the address out, else the address itself. */
export interface Target {
  /** Canonical. */
  readonly name?: Host | undefined
  /** What the sandbox wrote where that differs from the name: an SNI, a Host header. Hostile; the sink escapes and caps it. */
  readonly raw?: string | undefined
  /** The address that was dialled upstream, or for a literal the one that was asked for. */
  readonly address?: Address | undefined
  readonly port: Port
}

/** Numbers a connection within its run, so that its records can be put together. */
interface OfConnection {
  readonly connection: number
}

export interface RunStart {
  readonly kind: 'run-start'
  /** `policyData()`: everything in force and where it came from, values that may be secret left out. */
  readonly policy: unknown
  readonly backend: string
  readonly pen: string
  readonly bun: string
  readonly kernel: string
  readonly os: string
}

export interface ConnectionAllowed extends Target, OfConnection {
  readonly kind: 'connection-allowed'
  /** The rule as people write it (`printRule`) and where it stands (`showSource`). */
  readonly rule: string
  readonly from?: string | undefined
}

/** No rule names it, and a person may answer until then. One of the other records, with the same number, tells what came of it. */
export interface ConnectionHeld extends Target, OfConnection {
  readonly kind: 'connection-held'
  readonly until: string
}

export interface ConnectionDenied extends Target, OfConnection {
  readonly kind: 'connection-denied'
  /** A stable word: `DenialReason`, or the gateway's own such as `sni-mismatch`. */
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
  /** Who ended it, and why if neither side did: `client`, `upstream`, `idle`, `policy`, `limit`, `error`. */
  readonly reason: string
}

/** Queries that got no address, counted: a flood of them is one record per reason and interval. */
export interface DnsRefused {
  readonly kind: 'dns-refused'
  readonly reason: 'malformed' | 'rate' | 'pool' | 'invalid-name'
  readonly count: number
  /** The first one's name, if it could be read. Hostile. */
  readonly raw?: string | undefined
}

/** UDP, or a TCP port that no rule opens: once per flow. */
export interface FlowRefused {
  readonly kind: 'flow-refused'
  readonly protocol: 'udp' | 'tcp'
  readonly name?: Host | undefined
  readonly address?: Address | undefined
  readonly port: Port
  readonly reason: string
  readonly fix?: string | undefined
}

/** A bound was reached: connections, memory, wall time, disk… */
export interface LimitHit {
  readonly kind: 'limit-hit'
  readonly limit: string
  readonly value?: string | undefined
  readonly reason?: string | undefined
  /** The same in a sentence. */
  readonly why?: string | undefined
  readonly fix?: string | undefined
}

/** Something was planted at a protected place. Paths come from the sandbox: hostile. */
export interface Quarantined {
  readonly kind: 'quarantine'
  readonly path: string
  readonly reason: string
  readonly to?: string | null | undefined
  readonly restored?: boolean | undefined
}

/** A denied place that appeared, or a protected one that the host replaced, was mounted on anew. */
export interface PlaceHeld {
  readonly kind: 'place-held'
  readonly path: string
  readonly how: 'cover' | 'protect'
  readonly held: boolean
  /** Why not. */
  readonly reason?: string | undefined
}

/** A command began in a sandbox that stays. */
export interface ExecStart {
  readonly kind: 'exec-start'
  /** Numbers it within its run. */
  readonly execution: number
  /** Cut where it is long. The user's own words, but shown with care. */
  readonly command: readonly string[]
  readonly cwd: string
  readonly terminal: boolean
}

export interface ExecEnd {
  readonly kind: 'exec-end'
  readonly execution: number
  readonly exitCode: number | null
  /** What ended it, if it did not end by itself: `timeout`, `client`, `stop`, `lost`, a signal, or why it never began. */
  readonly reason?: string | undefined
  readonly ms: number
}

/** From now on programs of the host reach a port of the sandbox, at a port of the host's loopback. */
export interface ForwardStart {
  readonly kind: 'forward-start'
  readonly guest: number
  readonly host: number
}

export interface ForwardEnd {
  readonly kind: 'forward-end'
  readonly guest: number
  readonly host: number
  /** How many were passed on; and how many were not, because they were another user's or too many. */
  readonly connections: number
  readonly refused: number
  readonly ms: number
}

export interface PolicyChanged {
  readonly kind: 'policy-changed'
  /** Rules as people write them; those that refuse begin with `deny `. Connections that end for it have records of their own. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** When nobody changed a file: what was for a while is over. */
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
  /** How many records of each kind the run has; the sink adds it. */
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

/** The audit's own: records that are no longer there, or never came to be. Counts since the run began. */
export interface Dropped {
  readonly kind: 'dropped'
  readonly reason: 'full' | 'not-written'
  readonly count: number
  /** The sequence numbers that are gone; for records that could not be written there are none. */
  readonly firstSeq?: number | undefined
  readonly lastSeq?: number | undefined
  readonly kinds: Readonly<Record<string, number>>
  /** Whom the lost `connection-allowed` and `broker-allowed` records named, so that no flood can hide where bytes went. */
  readonly reached?: Readonly<Record<string, number>> | undefined
}

export type Verdict = 'allow' | 'hold' | 'deny' | 'error' | 'note'

/** What pen adds to every record. */
export interface Stamp {
  readonly v: typeof AUDIT_VERSION
  /** From 1, without a hole, within a run. */
  readonly seq: number
  readonly time: string
  readonly sandbox: string
  readonly run: string
  readonly verdict: Verdict
  /** Of a run that no kernel confines. */
  readonly soft?: true
}

export type AuditEvent = AuditEventInput | Dropped
export type AuditKind = AuditEvent['kind']

/** Where decisions are written down before they take effect. It throws when it cannot: then nothing may be done. */
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
