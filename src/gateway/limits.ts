/** Everything a sandbox can make the host do has a bound. Times are in milliseconds, sizes in bytes. */
export interface GatewayLimits {
  /** Connections of the sandbox that are open at once; each may hold two descriptors. */
  readonly maxConnections: number
  /** Connections that have not yet said what they want. */
  readonly maxUndecided: number
  /** Upstream connections being made at once; more wait their turn. */
  readonly maxDialling: number
  /** Attempts to reach another address of the same server beside a slow one, all dials together: each costs a descriptor. */
  readonly maxBeside: number
  /** Bytes in memory for peers that do not read, all connections together. Beyond it the newest are ended. */
  readonly maxHeld: number
  /** Connections that wait for a person, and those of them that want the same. */
  readonly maxHolding: number
  readonly maxHoldingAlike: number
  /** Denials that are recorded one by one: so many at once, and so many a second. More are closed and counted. */
  readonly denialBurst: number
  readonly denialsPerSecond: number

  /** How long a silent client is given before its upstream is dialled: a server may be the one that speaks first. */
  readonly graceMs: number
  /** How long a refused client may be silent before it is reset without a word in its own protocol. */
  readonly silenceMs: number
  /** How long a refused client's first bytes may stay undecidable. */
  readonly denyWithinMs: number
  /** A ClientHello or a request head has to be complete this long after its first byte. */
  readonly headMs: number
  readonly lookupMs: number
  /** One address of the upstream; the next one is tried beside it after `staggerMs`. */
  readonly connectMs: number
  readonly staggerMs: number
  /** How long a refused client may keep sending before it is cut off. It must get to read the answer. */
  readonly lingerMs: number
  /** A tunnel of which one side has said goodbye may go on this long without a byte. */
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
  maxHeld: 134_217_728,
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
