import type { Socket } from 'node:net'
import type { Address } from '../policy/address.ts'
import type { Port } from '../policy/port.ts'

/** A connection of the sandbox that the door has accepted. The socket has not been read from. */
export interface Accepted {
  readonly socket: Socket
  /** What the program dialled. */
  readonly to: { readonly address: Address; readonly port: Port }
  readonly via: 'transparent' | 'proxy'
}
