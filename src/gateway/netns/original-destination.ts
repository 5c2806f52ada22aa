/** Where a connection was going before the door's port took its place. The kernel says so; the sandbox cannot. */
import { AF, SOL } from '../../base/kernel/socket.ts'
import { tryCall } from '../../base/kernel/system-call.ts'
import { type Address, parseAddress, printAddress } from '../../policy/network/address.ts'
import { type Port, parsePort } from '../../policy/network/port.ts'
import type { TcpSocket } from '../stream/tcp-socket.ts'

export interface Destination {
  readonly address: Address
  readonly port: Port
}

const SO_ORIGINAL_DST = 80

/**
 * undefined when the kernel knows no other destination: the socket is gone, or the door's own port was dialled
 * on loopback. Either way there is nothing to reach, so the caller hangs up.
 */
export function originalDestination(socket: TcpSocket): Destination | undefined {
  const fd = socket.descriptor
  if (fd === undefined) return undefined
  // Cheaper than asking for the socket's family: one that has the other does not know this question.
  return ask(fd, SOL.ip, AF.inet) ?? ask(fd, SOL.ipv6, AF.inet6)
}

/** What was dialled is what the socket is bound to: for a door that listens on the ports themselves. */
export function boundDestination(socket: TcpSocket): Destination | undefined {
  const { local } = socket
  const address = parseAddress(local?.address ?? '')
  const port = parsePort(String(local?.port))
  return address.ok && port.ok ? { address: address.value, port: port.value } : undefined
}

// One buffer for all: the call and the reading of its answer are never interleaved.
const answer = new Uint8Array(28)
const size = new Uint32Array(1)

function ask(fd: number, level: number, family: number): Destination | undefined {
  size[0] = answer.length
  if (tryCall('getsockopt', fd, level, SO_ORIGINAL_DST, answer, size) !== 0) return undefined
  if (new DataView(answer.buffer).getUint16(0, true) !== family) return undefined
  const port = parsePort(String(((answer[2] ?? 0) << 8) | (answer[3] ?? 0)))
  if (!port.ok) return undefined
  const bytes = family === AF.inet ? answer.subarray(4, 8) : answer.subarray(8, 24)
  return { address: printAddress([...bytes]), port: port.value }
}
