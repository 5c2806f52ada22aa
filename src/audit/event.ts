/**
 * The records of the audit: one per decision, in a versioned schema. Readers must ignore unknown fields and kinds. A
 * change of meaning raises the version.
 */
import type { Address } from '../policy/network/address.ts'
import type { Host } from '../policy/network/host.ts'
import type { Port } from '../policy/network/port.ts'

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

interface Connection extends Target {
  /** Identifies the connection within its run. All its records carry the number. */
  readonly connection: number
}

/** A request in HTTP. */
interface Request {
  readonly method: string
  /** In its plain form, without the query. Hostile. */
  readonly path: string
}

/** A request to the file broker. */
interface FileRequest {
  /** Identifies the request within its run. All its records carry it. */
  readonly request: number
  readonly op: 'stat' | 'list' | 'read' | 'write'
  /** Comes from a sandbox. Hostile. */
  readonly path: string
}

/** A file or directory that the gate of the soft backend judges, because no kernel does. */
interface GateFile {
  readonly access: 'read' | 'write' | 'list' | 'delete'
  /** With links resolved. Hostile. */
  readonly path: string
}

interface Command {
  /** Shortened by `shortCommand`. Hostile, unless the user typed it. */
  readonly command: readonly string[]
}

interface Denial {
  /** A stable word: `DenialReason`, `GrantDenial`, or one of the gateway or broker, such as `sni-mismatch` or `link`. */
  readonly reason: string
  readonly why?: string | undefined
  /** The rule that denies, and its source. */
  readonly rule?: string | undefined
  readonly from?: string | undefined
  /** The command that would allow it. */
  readonly fix?: string | undefined
}

/** Rules as in the config. */
interface Change {
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

interface ForwardedPort {
  readonly guest: number
  readonly host: number
}

interface GitRef {
  /** Hostile. */
  readonly ref: string
  readonly commit: string | undefined
  /** The git directory of a submodule, below the repository's. */
  readonly submodule?: string | undefined
}

/** Each kind of record and its fields. */
interface Fields {
  'run-start': {
    /** `policyData()`: the policy with the source of each rule, without values that may be secret. */
    readonly policy: unknown
    readonly backend: string
    readonly pen: string
    readonly bun: string
    readonly kernel: string
    readonly os: string
  }
  'connection-allowed': Connection & {
    /** The rule (`printRule`) and its source (`showSource`). */
    readonly rule: string
    readonly from?: string | undefined
  }
  /** No rule decides, and the user may answer until then. Another record with the same number has the outcome. */
  'connection-held': Connection & Partial<Request> & { readonly until: string }
  'connection-denied': Connection & Denial & Partial<Request>
  /** A request to a host with rules about requests, or with a secret. Its connection has records too. */
  'request-allowed': Connection &
    Request & {
      readonly rule: string
      readonly from?: string | undefined
      /** The names of the secrets that the gateway put into it. */
      readonly secrets?: readonly string[] | undefined
    }
  'request-answered': Connection & { readonly status: number; readonly ms: number }
  /** Allowed, but the upstream could not be resolved or reached. */
  'connection-failed': Connection & {
    readonly reason: string
    readonly why?: string | undefined
    readonly ms?: number | undefined
  }
  'connection-closed': Connection & {
    readonly bytesUp: number
    readonly bytesDown: number
    readonly ms: number
    /** The side that closed it, or the cause: `client`, `upstream`, `idle`, `policy`, `limit`, `error`. */
    readonly reason: string
  }
  /** Queries that got no address: one record per reason and interval, with a count. */
  'dns-refused': {
    readonly reason: 'malformed' | 'rate' | 'pool' | 'invalid-name'
    readonly count: number
    /** The name in the first query, if readable. Hostile. */
    readonly raw?: string | undefined
  }
  /** Refused UDP, or a TCP port that no rule opens: once per flow. */
  'flow-refused': Omit<Target, 'raw'> & {
    readonly protocol: 'udp' | 'tcp'
    readonly reason: string
    readonly fix?: string | undefined
  }
  /** A limit was reached: connections, memory, wall time, disk… */
  'limit-hit': {
    readonly limit: string
    readonly value?: string | undefined
    readonly reason?: string | undefined
    /** The limit in a sentence. */
    readonly why?: string | undefined
    readonly fix?: string | undefined
  }
  /** A file appeared at a protected place. Paths come from the sandbox and are hostile. */
  quarantine: {
    readonly path: string
    readonly reason: string
    readonly to?: string | null | undefined
    readonly restored?: boolean | undefined
  }
  /** A denied place appeared, or the host replaced a protected one. The supervisor mounted over it again. */
  'place-held': {
    readonly path: string
    readonly how: 'cover' | 'protect'
    readonly held: boolean
    /** Why it is not held. */
    readonly reason?: string | undefined
  }
  /** A ref of the host's repository follows one of the sandbox's. `HEAD` counts as one. */
  'ref-moved': GitRef
  /** It stays in the sandbox, or goes to `refs/pen/`. */
  'ref-refused': GitRef & { readonly reason: string }
  /** A command started in a sandbox that stays. */
  'exec-start': Command & {
    /** Identifies the command within its run. */
    readonly execution: number
    readonly cwd: string
    readonly terminal: boolean
  }
  'exec-end': {
    readonly execution: number
    readonly exitCode: number | null
    /** Why it ended early or never started: `timeout`, `client`, `stop`, `lost`, a signal or an error. */
    readonly reason?: string | undefined
    readonly ms: number
  }
  /** Programs of the host reach a port of the sandbox from now on, on the host's loopback. */
  'forward-start': ForwardedPort
  'forward-end': ForwardedPort & {
    /** Forwarded connections, and those refused because of their user or a limit. */
    readonly connections: number
    readonly refused: number
    readonly ms: number
  }
  /** `rule` is the granted path. */
  'broker-allowed': FileRequest & { readonly rule: string }
  'broker-denied': FileRequest & Denial
  /** A transfer ended, or an allowed operation failed. */
  'broker-ended': FileRequest & {
    readonly bytes: number
    readonly ms: number
    /** `done`, or the reason of the failure: `revoked`, `expired`, `client`, `absent`… */
    readonly reason: string
  }
  /** A key of the host's SSH agent signs. `target` is a server, or the purpose of a signature. */
  'agent-signed': { readonly key: string; readonly target: string }
  'agent-refused': {
    readonly key: string
    readonly reason: 'not-granted'
    readonly why: string
    readonly fix: string
  }
  'grants-changed': Change
  /** Deny rules begin with `deny `. Connections that end for it have their own records. */
  'policy-changed': Change & {
    /** Set when a temporary rule expired, and no file changed. */
    readonly reason?: 'expired' | undefined
  }
  'policy-edit-refused': {
    readonly reason: string
    readonly at?: string | undefined
    readonly fix?: string | undefined
  }
  /** Something of this run stays on the host. It may come after `run-end`. */
  'cleanup-failed': { readonly what: string; readonly why: string; readonly fix: string }
  'file-allowed': GateFile & {
    readonly rule: string
    readonly from: string
    /** Number of entries, when a whole directory is deleted. */
    readonly names?: number | undefined
  }
  'file-denied': GateFile & Denial
  /** `program` is the executed file. */
  'tool-allowed': Command & { readonly program: string; readonly rule: string; readonly from: string }
  'tool-denied': Command & Denial
  'tool-ended': Command & {
    readonly exitCode: number
    readonly ms: number
    readonly timedOut: boolean
    readonly truncated: boolean
    /** Processes that pen could not end. */
    readonly survivors: number
  }
  'run-end': {
    readonly exitCode: number | null
    readonly signal?: string | undefined
    readonly reason?: string | undefined
    readonly ms?: number | undefined
    /** The number of records of each kind. The sink adds it. */
    readonly counts?: Readonly<Record<string, number>> | undefined
  }
  /** Written by the audit itself: records that were dropped or could not be written. Counts since the run began. */
  dropped: {
    readonly reason: 'full' | 'not-written'
    readonly count: number
    /** The dropped sequence numbers. Records that could not be written have none. */
    readonly firstSeq?: number | undefined
    readonly lastSeq?: number | undefined
    readonly kinds: Readonly<Record<string, number>>
    /** Targets in dropped `connection-allowed` and `broker-allowed` records, so that a flood cannot hide where bytes went. */
    readonly reached?: Readonly<Record<string, number>> | undefined
  }
}

type Kind = keyof Fields

export type AuditEventOf<K extends Kind> = { [Each in K]: { readonly kind: Each } & Fields[Each] }[K]
export type AuditEvent = AuditEventOf<Kind>
export type AuditEventInput = AuditEventOf<Exclude<Kind, 'dropped'>>

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

/** Records decisions before they take effect. `record` throws on failure, and then the caller must not act. */
export interface AuditSink {
  record(event: AuditEventInput): void
}

export const VERDICTS: Readonly<Record<Kind, Verdict>> = {
  'run-start': 'note',
  'connection-allowed': 'allow',
  'connection-held': 'hold',
  'connection-denied': 'deny',
  'request-allowed': 'allow',
  'request-answered': 'note',
  'connection-failed': 'error',
  'connection-closed': 'note',
  'dns-refused': 'deny',
  'flow-refused': 'deny',
  'limit-hit': 'error',
  quarantine: 'deny',
  'place-held': 'note',
  'ref-moved': 'allow',
  'ref-refused': 'deny',
  'exec-start': 'note',
  'exec-end': 'note',
  'forward-start': 'note',
  'forward-end': 'note',
  'broker-allowed': 'allow',
  'broker-denied': 'deny',
  'broker-ended': 'note',
  'agent-signed': 'allow',
  'agent-refused': 'deny',
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
