/** Limits on all work that a sandbox can cause in the broker. Times are in milliseconds, sizes in bytes. */
export const DEFAULT_LIMITS = {
  maxConnections: 64,
  /** Active requests of all connections. */
  maxRequests: 64,
  /** Started requests: a burst and a rate. Further ones wait, so each is served and recorded. */
  requestBurst: 1000,
  requestsPerSecond: 200,
  /** This many directory entries cost as much as one request in the rate limit. */
  namesPerTurn: 200,
  /** Bytes of one written file. */
  maxWrite: 1024 ** 3,
  /** Entries that are read of one directory. */
  maxNames: 10_000,
  pageNames: 1000,
  /** A transfer without progress ends after this time. */
  stallMs: 60_000,
  /** How often waiting transfers are checked against the grants. Active ones are checked for each piece. */
  tickMs: 50,
}

export type BrokerLimits = Readonly<typeof DEFAULT_LIMITS>
