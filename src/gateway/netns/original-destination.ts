/** The destination that a program dialled before the rules redirected it. The kernel reports it; a sandbox cannot forge it. */
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
 * Undefined when the kernel knows no destination: the socket is closed, or the program dialled the door's own port on
 * loopback. The caller then closes the connection.
 */
export function originalDestination(socket: TcpSocket): Destination | undefined {
  const fd = socket.descriptor
  if (fd === undefined) return undefined
  // Trying both is cheaper than asking for the family: a socket of the other family returns an error.
  return ask(fd, SOL.ip, AF.inet) ?? ask(fd, SOL.ipv6, AF.inet6)
}

/** For a door without rules: the local address of the socket is the dialled one. */
export function boundDestination(socket: TcpSocket): Destination | undefined {
  const { local } = socket
  const address = parseAddress(local?.address ?? '')
  const port = parsePort(String(local?.port))
  return address.ok && port.ok ? { address: address.value, port: port.value } : undefined
}

// One buffer for all calls, because the call and the read of its answer are never interleaved.
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
