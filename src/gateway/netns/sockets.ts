/** Sockets of the namespace it is called in, for somebody elsewhere to dial with: whatever they are connected to is in here. */
import { close } from '../../base/kernel/descriptor.ts'
import { AF, SOCK } from '../../base/kernel/socket.ts'
import { systemCall } from '../../base/kernel/system-call.ts'
import type { Opened, Role } from './listeners.ts'

export type Family = typeof AF.inet | typeof AF.inet6

/** A socket that nothing was done with yet. It belongs to the network namespace that it is made in, whoever uses it. */
export const unconnected = (family: Family): number =>
  systemCall('socket', family, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0)

/** So many pairs: one for each family, because a server may listen on one of them alone. */
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
    // A kernel without IPv6 has no server there either.
  }
  return opened
}
