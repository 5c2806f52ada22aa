/** Sockets of the current network namespace: bound ones, and unconnected ones with which pen dials from outside. */
import { close } from '../../base/kernel/descriptor.ts'
import { AF, SOCK, SOL } from '../../base/kernel/socket.ts'
import { succeeded, systemCall, tryCall } from '../../base/kernel/system-call.ts'
import { LOOPBACK } from '../../policy/network/address.ts'
import type { Opened, Role } from './listeners.ts'

export type Family = typeof AF.inet | typeof AF.inet6

/** A new socket. It stays in the network namespace in which it is created, whichever process uses it. */
export const unconnected = (family: Family): number =>
  systemCall('socket', family, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0)

/** `struct sockaddr_in`, or `sockaddr_in6`. An empty address stands for every address. */
export function socketName(family: Family, address: ArrayLike<number>, port: number): Uint8Array {
  const name = new Uint8Array(family === AF.inet ? 16 : 28)
  new DataView(name.buffer).setUint16(0, family, true)
  new DataView(name.buffer).setUint16(2, port)
  name.set(address, family === AF.inet ? 4 : 8)
  return name
}

const SO_REUSEADDR = 2
const IPV6_V6ONLY = 26

export const loopbackOf = (family: Family): readonly number[] =>
  family === AF.inet ? LOOPBACK.ip : LOOPBACK.ip6

export interface Binding {
  readonly family: Family
  readonly type: number
  /** An empty one stands for every address. */
  readonly address: readonly number[]
  readonly port: number
  /** A socket that listens: how many connections the kernel queues. */
  readonly backlog?: number
  /** Allows ports with connections in TIME_WAIT. A second listener is still refused. */
  readonly reuse?: boolean
}

/** Closes the socket on failure. An open one would keep the namespace alive as long as the supervisor. */
export function bound({ family, type, address, port, backlog, reuse }: Binding): number {
  const fd = systemCall('socket', family, type | SOCK.cloexec, 0)
  const switchOn = (level: number, option: number): number =>
    systemCall('setsockopt', fd, level, option, new Int32Array([1]), 4)
  try {
    if (family === AF.inet6) switchOn(SOL.ipv6, IPV6_V6ONLY)
    if (reuse === true) switchOn(SOL.socket, SO_REUSEADDR)
    const name = socketName(family, address, port)
    succeeded(`bind port ${port}`, tryCall('bind', fd, name, name.length))
    if (backlog !== undefined) succeeded(`listen on ${port}`, tryCall('listen', fd, backlog))
    return fd
  } catch (error) {
    close(fd)
    throw error
  }
}

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
