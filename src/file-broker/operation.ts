/** What every operation is: looked up without any effect, recorded, and only then carried out. */
import type { FileGrant } from '../policy/files/decide-grant.ts'
import type { Exchange } from './exchange.ts'
import type { BrokerLimits } from './limits.ts'

/** A granted place, for one request. */
export interface Access {
  readonly grant: FileGrant
  readonly path: string
  readonly limits: BrokerLimits
  /** Opens what stands at a path that this grant covers; the caller closes it. */
  open(path: string): number
  /** Whether a name beneath may be told. */
  mayTell(path: string): boolean
  /** Throws when the grant has been taken back or is over. To be asked before every step that has an effect. */
  check(): void
  /** To be waited for before each further piece of work that no bytes of the client's pay for. */
  turn(): Promise<void>
  /** Counts what is put on the disk; throws when this run has written enough. */
  spend(bytes: number): void
}

export interface Operation {
  run(exchange: Exchange): Promise<void>
  close(): void
}
