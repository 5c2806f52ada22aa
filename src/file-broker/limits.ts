/** Limits on all work that a sandbox can cause in the broker. Times are in milliseconds, sizes in bytes. */
export interface BrokerLimits {
  readonly maxConnections: number
  /** Active requests of all connections. */
  readonly maxRequests: number
  /** Started requests: a burst and a rate. Further ones wait, so each is served and recorded. */
  readonly requestBurst: number
  readonly requestsPerSecond: number
  /** This many directory entries cost as much as one request in the rate limit. */
  readonly namesPerTurn: number
  /** Bytes of one written file. */
  readonly maxWrite: number
  /** Entries that are read of one directory. */
  readonly maxNames: number
  readonly pageNames: number
  /** A transfer without progress ends after this time. */
  readonly stallMs: number
  /** How often waiting transfers are checked against the grants. Active ones are checked for each piece. */
  readonly tickMs: number
}

export const DEFAULT_LIMITS: BrokerLimits = {
  maxConnections: 64,
  maxRequests: 64,
  requestBurst: 1000,
  requestsPerSecond: 200,
  namesPerTurn: 200,
  maxWrite: 1024 ** 3,
  maxNames: 10_000,
  pageNames: 1000,
  stallMs: 60_000,
  tickMs: 50,
}
