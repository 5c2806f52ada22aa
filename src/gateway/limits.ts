/** Limits on all work that a sandbox can cause on the host. Times are in milliseconds, sizes in bytes. */
export const DEFAULT_LIMITS = {
  /** Open connections of the sandbox. Each may use two descriptors. */
  maxConnections: 8192,
  /** Connections whose verdict is still open. */
  maxUndecided: 4096,
  /** Upstream dials at the same time. More wait in a queue. */
  maxDialling: 512,
  /** Parallel attempts at further addresses of slow servers, over all dials. Each costs a descriptor. */
  maxBeside: 128,
  /** Bytes buffered for peers that do not read, over all connections. Beyond it the newest connections end. */
  maxBuffered: 134_217_728,
  /** Held connections in all, and to one target. */
  maxHolding: 128,
  maxHoldingAlike: 32,
  /** Denials that get a record each: a burst and a rate. The rest are closed and counted. */
  denialBurst: 1000,
  denialsPerSecond: 200,

  /** How long a client may be silent before the gateway dials, because the server may speak first. */
  graceMs: 10,
  /** How long a refused client may be silent before it is reset without a reply in its protocol. */
  silenceMs: 500,
  /** How long the first bytes of a refused client may stay undecided. */
  denyWithinMs: 40,
  /** Time from the first byte of a ClientHello or request head to its last. */
  headMs: 10_000,
  lookupMs: 5_000,
  /** Timeout of a dial. After `staggerMs` the next address is tried in parallel. */
  connectMs: 10_000,
  staggerMs: 250,
  /** How long a refused client may keep sending before it is reset. It must be able to read the reply. */
  lingerMs: 2_000,
  /** Idle timeout of a half-closed tunnel. */
  halfClosedMs: 600_000,

  maxHello: 65_536,
  maxRequestHead: 16_384,
  maxResponseHead: 65_536,
  maxTarget: 8_192,
  maxRequestFields: 100,
  maxResponseFields: 200,
  /** The body of a request that pen must hash or rewrite. */
  maxHeldBody: 8_388_608,
  /** A request to a sign-in server. */
  maxTokenRequest: 65_536,
  /** 1xx answers before the final one. */
  maxInformational: 16,
}

export type GatewayLimits = Readonly<typeof DEFAULT_LIMITS>
