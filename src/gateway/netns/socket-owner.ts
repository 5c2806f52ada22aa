/**
 * SandboxNetwork program is at the other end of a connection on this machine: loopback is open to every user of it, and only the kernel
 * knows who dialled. Asked by its own messages (sock_diag), which find one socket among any number at once.
 */
import { close } from '../../base/kernel/descriptor.ts'
import { AF, SOCK } from '../../base/kernel/socket.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'
import { readAddress } from '../../policy/network/address.ts'

export interface SocketEnd {
  readonly address: string
  readonly port: number
}

const NETLINK_SOCK_DIAG = 4
const SOCK_DIAG_BY_FAMILY = 20
const NLM_F_REQUEST = 1
const IPPROTO_TCP = 6
const MSG_DONTWAIT = 0x40
/** `struct nlmsghdr`, then `struct inet_diag_req_v2` or `struct inet_diag_msg`. */
const HEADER = 16
const REQUEST = HEADER + 56
const PEER_PORT_AT = HEADER + 6
const UID_AT = HEADER + 64
const INODE_AT = HEADER + 68
const ANSWER = HEADER + 72

export class SocketOwners {
  readonly #socket = succeeded(
    'open sock_diag',
    tryCall('socket', AF.netlink, SOCK.raw | SOCK.cloexec, NETLINK_SOCK_DIAG),
  )
  #asked = 0

  /**
   * The user of the socket that is bound to `own` and connected to `peer`; without a peer, that listens there. Undefined where
   * there is none, or its program has closed it: what the kernel then says of its user is nobody's word.
   */
  userOf(own: SocketEnd, peer?: SocketEnd): number | undefined {
    const request = requestFor(++this.#asked, own, peer)
    const answer = new Uint8Array(4096)
    if (request === undefined) return undefined
    if (tryCall('sendto', this.#socket, request, request.length, 0) < 0) return undefined
    const size = Number(tryCall('recvfrom', this.#socket, answer, answer.length, MSG_DONTWAIT))
    const view = new DataView(answer.buffer)
    if (size < ANSWER || view.getUint16(4, true) !== SOCK_DIAG_BY_FAMILY) return undefined
    // Where no socket is connected like that, the kernel tells of one that listens there.
    if (view.getUint16(PEER_PORT_AT) !== (peer?.port ?? 0)) return undefined
    if (view.getUint32(8, true) !== this.#asked || view.getUint32(INODE_AT, true) === 0) return undefined
    return view.getUint32(UID_AT, true)
  }

  close(): void {
    close(this.#socket)
  }
}

function requestFor(number: number, own: SocketEnd, peer: SocketEnd | undefined): Uint8Array | undefined {
  const source = readAddress(own.address)
  const target = peer === undefined ? source?.map(() => 0) : readAddress(peer.address)
  if (source === undefined || target === undefined || source.length !== target.length) return undefined
  const message = new Uint8Array(REQUEST)
  const view = new DataView(message.buffer)
  view.setUint32(0, REQUEST, true)
  view.setUint16(4, SOCK_DIAG_BY_FAMILY, true)
  view.setUint16(6, NLM_F_REQUEST, true)
  view.setUint32(8, number, true)
  message[HEADER] = source.length === 4 ? AF.inet : AF.inet6
  message[HEADER + 1] = IPPROTO_TCP
  // In any state; and whatever number the kernel has given it.
  view.setUint32(HEADER + 4, 0xffffffff, true)
  view.setUint16(HEADER + 8, own.port)
  view.setUint16(HEADER + 10, peer?.port ?? 0)
  message.set(source, HEADER + 12)
  message.set(target, HEADER + 28)
  message.fill(0xff, HEADER + 48, HEADER + 56)
  return message
}
