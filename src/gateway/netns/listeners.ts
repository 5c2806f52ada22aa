/** Makes every address of the current namespace local, and opens the door's listeners in it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { close, openPath } from '../../base/kernel/descriptor.ts'
import { NETLINK, openNetlink, request } from '../../base/kernel/netlink.ts'
import { AF, SOCK, SOL } from '../../base/kernel/socket.ts'
import { succeeded, systemCall, tryCall } from '../../base/kernel/system-call.ts'
import { PROXY_PORT } from '../../protocol/guest-paths.ts'
import { bringUpLoopback, makeEveryAddressLocal } from './loopback.ts'
import { batch } from './nf-tables.ts'
import { CATCH_ALL_PORT, DNS_PORT, IPV6_SETTINGS, RULES, SETTINGS, type Setting } from './rules.ts'

/** The purpose of a descriptor. */
export type Role =
  | 'network'
  | 'user'
  | 'rules'
  | 'dialled'
  | 'proxy'
  | 'dns-stream'
  | 'dns-datagram4'
  | 'dns-datagram6'
  | 'inside4'
  | 'inside6'

type Family = typeof AF.inet | typeof AF.inet6

/** The kernel queues this many connections until the gateway accepts them. Further clients wait. */
const BACKLOG = 4096
const IPV6_V6ONLY = 26

export type Opened = readonly (readonly [Role, number])[]

/** Opens listeners with rules that redirect every port, or on single ports. Undefined when the kernel refuses the rules. */
export function openListeners(how: 'mapped'): Opened | undefined
export function openListeners(how: readonly number[]): Opened
export function openListeners(how: 'mapped' | readonly number[]): Opened | undefined {
  const rules = how === 'mapped' ? loadRules() : undefined
  if (how === 'mapped' && rules === undefined) return undefined
  const opened: [Role, number][] = rules === undefined ? [] : [['rules', rules]]
  try {
    bringUpLoopback()
    makeEveryAddressLocal(AF.inet)
    opened.push(['network', openPath('/proc/thread-self/ns/net')])
    opened.push(['user', openPath('/proc/thread-self/ns/user')])
    const ports = how === 'mapped' ? [CATCH_ALL_PORT] : how
    listenAll(AF.inet, ports, opened)
    opened.push(['proxy', listen(AF.inet, 'loopback', PROXY_PORT)])
    listenAllIpv6(ports, opened)
    // Some settings exist only after the rules are loaded.
    apply(SETTINGS)
    return opened
  } catch (error) {
    for (const [, fd] of opened) close(fd)
    throw error
  }
}

/** Returns the netlink socket, over which pen later asks for refused datagrams. Undefined when the kernel refuses. */
function loadRules(): number | undefined {
  let socket: number | undefined
  try {
    socket = openNetlink(NETLINK.netfilter)
    request('load the rules', socket, batch(RULES))
    return socket
  } catch (error) {
    if (socket !== undefined) close(socket)
    if (!(error instanceof CallFailed)) throw error
    return undefined
  }
}

function listenAll(family: Family, ports: readonly number[], opened: [Role, number][]): void {
  for (const port of ports) opened.push(['dialled', listen(family, 'every', port)])
  opened.push(['dns-stream', listen(family, 'loopback', DNS_PORT)])
  opened.push([family === AF.inet ? 'dns-datagram4' : 'dns-datagram6', datagram(family, DNS_PORT)])
}

/** A kernel without IPv6 has no IPv6 way out, so its absence is not an error. */
function listenAllIpv6(ports: readonly number[], opened: [Role, number][]): void {
  const ipv6: [Role, number][] = []
  try {
    apply(IPV6_SETTINGS)
    makeEveryAddressLocal(AF.inet6)
    listenAll(AF.inet6, ports, ipv6)
    opened.push(...ipv6)
  } catch {
    for (const [, fd] of ipv6) close(fd)
  }
}

function listen(family: Family, where: 'every' | 'loopback', port: number): number {
  const fd = bound(family, SOCK.stream, where, port)
  return closeOnError(fd, () => succeeded(`listen on ${port}`, tryCall('listen', fd, BACKLOG)))
}

const datagram = (family: Family, port: number): number => bound(family, SOCK.dgram, 'loopback', port)

function bound(family: Family, type: number, where: 'every' | 'loopback', port: number): number {
  const fd = systemCall('socket', family, type | SOCK.cloexec, 0)
  const name = new Uint8Array(family === AF.inet ? 16 : 28)
  new DataView(name.buffer).setUint16(0, family, true)
  new DataView(name.buffer).setUint16(2, port)
  if (where === 'loopback') name.set(family === AF.inet ? [127, 0, 0, 1] : [1], family === AF.inet ? 4 : 23)
  return closeOnError(fd, () => {
    if (family === AF.inet6)
      succeeded('IPV6_V6ONLY', tryCall('setsockopt', fd, SOL.ipv6, IPV6_V6ONLY, new Int32Array([1]), 4))
    succeeded(`bind port ${port}`, tryCall('bind', fd, name, name.length))
  })
}

/** Closes the socket on failure. An open one would keep the namespace alive as long as the supervisor. */
function closeOnError(fd: number, work: () => unknown): number {
  try {
    work()
    return fd
  } catch (error) {
    close(fd)
    throw error
  }
}

/** For speed, not safety: a kernel without one of these serves fewer connections per minute. */
function apply(settings: readonly Setting[]): void {
  for (const { file, value } of settings) {
    try {
      // Even an unchanged value makes the kernel visit every interface, so it is not written.
      if (readFileSync(file, 'utf8').trim() !== value) writeFileSync(file, value)
    } catch {}
  }
}
