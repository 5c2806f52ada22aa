/** Limits on all work that a sandbox can cause on the host. Times are in milliseconds, sizes in bytes. */
export interface GatewayLimits {
  /** Open connections of the sandbox. Each may use two descriptors. */
  readonly maxConnections: number
  /** Connections whose verdict is still open. */
  readonly maxUndecided: number
  /** Upstream dials at the same time. More wait in a queue. */
  readonly maxDialling: number
  /** Parallel attempts at further addresses of slow servers, over all dials. Each costs a descriptor. */
  readonly maxBeside: number
  /** Bytes buffered for peers that do not read, over all connections. Beyond it the newest connections end. */
  readonly maxBuffered: number
  /** Held connections in all, and to one target. */
  readonly maxHolding: number
  readonly maxHoldingAlike: number
  /** Denials that get a record each: a burst and a rate. The rest are closed and counted. */
  readonly denialBurst: number
  readonly denialsPerSecond: number

  /** How long a client may be silent before the gateway dials, because the server may speak first. */
  readonly graceMs: number
  /** How long a refused client may be silent before it is reset without a reply in its protocol. */
  readonly silenceMs: number
  /** How long the first bytes of a refused client may stay undecided. */
  readonly denyWithinMs: number
  /** Time from the first byte of a ClientHello or request head to its last. */
  readonly headMs: number
  readonly lookupMs: number
  /** Timeout of a dial. After `staggerMs` the next address is tried in parallel. */
  readonly connectMs: number
  readonly staggerMs: number
  /** How long a refused client may keep sending before it is reset. It must be able to read the reply. */
  readonly lingerMs: number
  /** Idle timeout of a half-closed tunnel. */
  readonly halfClosedMs: number

  readonly maxHello: number
  readonly maxRequestHead: number
  readonly maxResponseHead: number
  readonly maxTarget: number
  readonly maxRequestFields: number
  readonly maxResponseFields: number
  /** 1xx answers before the final one. */
  readonly maxInformational: number
}

export const DEFAULT_LIMITS: GatewayLimits = {
  maxConnections: 8192,
  maxUndecided: 4096,
  maxDialling: 512,
  maxBeside: 128,
  maxBuffered: 134_217_728,
  maxHolding: 128,
  maxHoldingAlike: 32,
  denialBurst: 1000,
  denialsPerSecond: 200,

  graceMs: 10,
  silenceMs: 500,
  denyWithinMs: 40,
  headMs: 10_000,
  lookupMs: 5_000,
  connectMs: 10_000,
  staggerMs: 250,
  lingerMs: 2_000,
  halfClosedMs: 600_000,

  maxHello: 65_536,
  maxRequestHead: 16_384,
  maxResponseHead: 65_536,
  maxTarget: 8_192,
  maxRequestFields: 100,
  maxResponseFields: 200,
  maxInformational: 16,
}
