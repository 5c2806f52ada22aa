/** Everything a sandbox can make the broker do has a bound. Times are in milliseconds, sizes in bytes. */
export interface BrokerLimits {
  readonly maxConnections: number
  /** Requests under way, all connections together. */
  readonly maxRequests: number
  /** Requests begun: so many at once, and so many a second after that. More wait, so each is served and recorded. */
  readonly requestBurst: number
  readonly requestsPerSecond: number
  /** Names of a directory that are read for the price of one request: a listing waits as so many requests would. */
  readonly namesPerTurn: number
  /** New content of one file. */
  readonly maxWrite: number
  /** Names of one directory; no more are read. */
  readonly maxNames: number
  readonly pageNames: number
  /** A transfer in which nothing moves is ended. */
  readonly stallMs: number
  /** How often waiting transfers are asked whether they are still granted; those that move are asked for each piece. */
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
