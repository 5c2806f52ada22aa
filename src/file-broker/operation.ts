/** Every operation is prepared without side effects and recorded before it runs. */
import type { FileGrant } from '../policy/files/decide-grant.ts'
import type { Exchange } from './exchange.ts'
import type { BrokerLimits } from './limits.ts'

/** The granted path of one request. */
export interface Access {
  readonly grant: FileGrant
  readonly path: string
  readonly limits: BrokerLimits
  /** Opens a path that the grant covers. The caller closes the descriptor. */
  open(path: string): number
  /** Whether a listing may show the path. */
  mayList(path: string): boolean
  /** Throws when the grant is revoked or expired. Called before every step with a side effect. */
  check(): void
  /** Waits in the rate limit. Called before further work that costs the client nothing. */
  turn(): Promise<void>
  /** Counts written bytes. Throws when the run exceeds its limit. */
  spend(bytes: number): void
}

export interface Operation {
  run(exchange: Exchange): Promise<void>
  close(): void
}
