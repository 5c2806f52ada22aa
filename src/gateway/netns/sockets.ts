/** Unconnected sockets of the current network namespace. pen dials with them from outside and reaches only this namespace. */
import { close } from '../../base/kernel/descriptor.ts'
import { AF, SOCK } from '../../base/kernel/socket.ts'
import { systemCall } from '../../base/kernel/system-call.ts'
import type { Opened, Role } from './listeners.ts'

export type Family = typeof AF.inet | typeof AF.inet6

/** A new socket. It stays in the network namespace in which it is created, whichever process uses it. */
export const unconnected = (family: Family): number =>
  systemCall('socket', family, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0)

/** Pairs of an IPv4 and an IPv6 socket, because a server may listen on only one of them. */
export function openSockets(pairs: number): Opened {
  const opened: [Role, number][] = []
  try {
    for (let made = 0; made < pairs; made++) opened.push(['inside4', unconnected(AF.inet)])
  } catch (error) {
    for (const [, fd] of opened) close(fd)
    throw error
  }
  try {
    for (let made = 0; made < pairs; made++) opened.push(['inside6', unconnected(AF.inet6)])
  } catch {
    // A kernel without IPv6 has no IPv6 server either.
  }
  return opened
}
