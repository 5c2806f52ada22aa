/** Dials a server on the loopback of a sandbox, through a socket of its network namespace. */
import { close } from '../../base/kernel/descriptor.ts'
import { type Address, LOOPBACK, printAddress } from '../../policy/network/address.ts'
import type { Port } from '../../policy/network/port.ts'
import { connectTcp } from '../dial/tcp-connect.ts'
import type { SocketPair } from '../netns/namespace-sockets.ts'
import type { TcpSocket } from '../stream/tcp-socket.ts'

const CONNECT_MS = 10_000

/** Tries IPv4, then IPv6, because a server may listen on only one of them. Takes ownership of the sockets. */
export async function dialInside({ v4, v6 }: SocketPair, port: Port): Promise<TcpSocket> {
  try {
    const socket = await dial(printAddress(LOOPBACK.ip), port, v4)
    if (v6 !== undefined) close(v6)
    return socket
  } catch (error) {
    if (v6 === undefined) throw error
    return await dial(printAddress(LOOPBACK.ip6), port, v6)
  }
}

function dial(address: Address, port: Port, made: number): Promise<TcpSocket> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => socket.destroy(), CONNECT_MS)
    const socket = connectTcp(
      address,
      port,
      error => {
        clearTimeout(late)
        // Without a listener, a socket with the same local port connects to itself.
        const isItself = error === undefined && socket.local?.port === port
        if (isItself) socket.reset()
        if (error === undefined && !isItself) resolve(socket)
        else reject(error ?? new Error('no server listens'))
      },
      made,
    )
  })
}
