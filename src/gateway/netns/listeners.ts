/** Makes every address of the current namespace local, and opens the door's listeners in it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { CallFailed } from '../../base/kernel/call-failed.ts'
import { close, openPath } from '../../base/kernel/descriptor.ts'
import { NETLINK, openNetlink, request } from '../../base/kernel/netlink.ts'
import { AF, SOCK } from '../../base/kernel/socket.ts'
import { PROXY_PORT } from '../../protocol/guest-paths.ts'
import { bringUpLoopback, makeEveryAddressLocal } from './loopback.ts'
import { batch } from './nf-tables.ts'
import { CATCH_ALL_PORT, DNS_PORT, IPV6_SETTINGS, RULES, SETTINGS } from './rules.ts'
import { bound, type Family, loopbackOf } from './sockets.ts'

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

/** The kernel queues this many connections until the gateway accepts them. Further clients wait. */
const BACKLOG = 4096

export type Opened = readonly (readonly [Role, number])[]

/** Opens listeners with rules that redirect every port to them. Undefined when the kernel refuses the rules. */
export function openMapped(): Opened | undefined {
  const rules = loadRules()
  return rules === undefined ? undefined : openListeners([CATCH_ALL_PORT], [['rules', rules]])
}

/** Opens listeners on these ports. Closes everything when it fails, also what is open already. */
export function openListeners(ports: readonly number[], opened: [Role, number][] = []): Opened {
  try {
    bringUpLoopback()
    makeEveryAddressLocal(AF.inet)
    opened.push(['network', openPath('/proc/thread-self/ns/net')])
    opened.push(['user', openPath('/proc/thread-self/ns/user')])
    listenAll(AF.inet, ports, opened)
    opened.push(['proxy', loopback(AF.inet, SOCK.stream, PROXY_PORT)])
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
  for (const port of ports)
    opened.push(['dialled', bound({ family, type: SOCK.stream, address: [], port, backlog: BACKLOG })])
  opened.push(['dns-stream', loopback(family, SOCK.stream, DNS_PORT)])
  opened.push([
    family === AF.inet ? 'dns-datagram4' : 'dns-datagram6',
    loopback(family, SOCK.dgram, DNS_PORT),
  ])
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

const loopback = (family: Family, type: number, port: number): number =>
  bound({
    family,
    type,
    address: loopbackOf(family),
    port,
    ...(type === SOCK.stream && { backlog: BACKLOG }),
  })

/** For speed, not safety: a kernel without one of these serves fewer connections per minute. */
function apply(settings: Readonly<Record<string, string>>): void {
  for (const [file, value] of Object.entries(settings)) {
    try {
      // Even an unchanged value makes the kernel visit every interface, so it is not written.
      if (readFileSync(file, 'utf8').trim() !== value) writeFileSync(file, value)
    } catch {}
  }
}
