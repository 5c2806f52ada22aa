/**
 * Finds the user at the other end of a connection on this machine. Every local user can connect to loopback, and only
 * the kernel knows who did. It is asked over sock_diag, which finds one socket among any number at once.
 */
import { close } from '../../base/kernel/descriptor.ts'
import {
  MessageWriter,
  NETLINK,
  NLM_F,
  openNetlink,
  readMessages,
  receive,
} from '../../base/kernel/netlink.ts'
import { AF } from '../../base/kernel/socket.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'
import { readAddress } from '../../policy/network/address.ts'

export interface SocketEnd {
  readonly address: string
  readonly port: number
}

const SOCK_DIAG_BY_FAMILY = 20
const IPPROTO_TCP = 6
/** Size of `struct inet_diag_req_v2`. */
const REQUEST = 56
/** Size and offsets of `struct inet_diag_msg`. */
const ANSWER = 72
const PEER_PORT_AT = 6
const UID_AT = 64
const INODE_AT = 68

export class SocketOwners {
  readonly #socket = openNetlink(NETLINK.sockDiag)
  #sequence = 0

  /**
   * The user of the socket that is bound to `own` and connected to `peer`, or listens at `own` without a peer. Undefined
   * when there is no such socket, or its program has closed it: the kernel then reports a meaningless user.
   */
  userOf(own: SocketEnd, peer?: SocketEnd): number | undefined {
    const request = requestFor(++this.#sequence, own, peer)
    if (request === undefined) return undefined
    try {
      const what = 'find the owner of a socket'
      succeeded(what, tryCall('sendto', this.#socket, request, request.length, 0))
      const [answer] = readMessages(receive(what, this.#socket, new Uint8Array(4096)))
      if (answer?.type !== SOCK_DIAG_BY_FAMILY || answer.sequence !== this.#sequence) return undefined
      return userIn(answer.body, peer?.port ?? 0)
    } catch {
      return undefined
    }
  }

  close(): void {
    close(this.#socket)
  }
}

function userIn(body: Uint8Array, peerPort: number): number | undefined {
  if (body.length < ANSWER) return undefined
  const view = new DataView(body.buffer, body.byteOffset, body.length)
  // When no socket is connected like that, the kernel reports one that listens there.
  if (view.getUint16(PEER_PORT_AT) !== peerPort || view.getUint32(INODE_AT, true) === 0) return undefined
  return view.getUint32(UID_AT, true)
}

function requestFor(sequence: number, own: SocketEnd, peer: SocketEnd | undefined): Uint8Array | undefined {
  const source = readAddress(own.address)
  const target = peer === undefined ? source?.map(() => 0) : readAddress(peer.address)
  if (source === undefined || target === undefined || source.length !== target.length) return undefined
  const body = new Uint8Array(REQUEST)
  const view = new DataView(body.buffer)
  body[0] = source.length === 4 ? AF.inet : AF.inet6
  body[1] = IPPROTO_TCP
  // Sockets in every state.
  view.setUint32(4, 0xffffffff, true)
  view.setUint16(8, own.port)
  view.setUint16(10, peer?.port ?? 0)
  body.set(source, 12)
  body.set(target, 28)
  // Any cookie.
  body.fill(0xff, 48, 56)
  const to = new MessageWriter(REQUEST + 16)
  to.message(SOCK_DIAG_BY_FAMILY, NLM_F.request, sequence, () => to.raw(body))
  return to.written()
}
