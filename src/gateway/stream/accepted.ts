import type { Address } from '../../policy/network/address.ts'
import type { Port } from '../../policy/network/port.ts'
import type { StreamSocket } from './stream-socket.ts'

/** A connection of the sandbox that the door has accepted. The socket has not been read from. */
export interface Accepted {
  readonly socket: StreamSocket
  /** What the program dialled. */
  readonly to: { readonly address: Address; readonly port: Port }
  readonly via: 'transparent' | 'proxy'
  /** Where others can reach the listener too: who does not know it is told nothing. */
  readonly secret?: string | undefined
}
