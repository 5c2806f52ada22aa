/**
 * The rules of the namespace: they redirect dialled ports to the ports of the door. Those are below 1024, where a
 * sandbox cannot bind. They are always free, because the namespace is new.
 */
import { LOOPBACK } from '../../policy/network/address.ts'
import {
  accept,
  addDestination,
  type Change,
  chain,
  type DestinationSet,
  destinations,
  type Expression,
  type Family,
  isReply,
  leave,
  ofFamily,
  ofProtocol,
  redirect,
  redirectPort,
  reset,
  rule,
  table,
  toAddress,
  toPort,
  unreachable,
} from './nf-tables.ts'

/** Receives TCP connections to every port, except on loopback. */
export const CATCH_ALL_PORT = 1
export const DNS_PORT = 53

/** Refused UDP destinations in each of the IPv4 and IPv6 sets. A hostile sandbox cannot add more. */
export const MAX_REFUSED = 4096

export const TABLE = 'pen'

const REFUSED = {
  ip: { name: 'refused4', family: 'ip', id: 1 },
  ip6: { name: 'refused6', family: 'ip6', id: 2 },
} as const satisfies Record<Family, DestinationSet>
export const REFUSED_SETS: readonly string[] = [REFUSED.ip.name, REFUSED.ip6.name]

const toLoopback = { ip: toAddress('ip', [127]), ip6: toAddress('ip6', LOOPBACK.ip6) } as const

const dialled = (...expressions: readonly Expression[]): Change => rule(TABLE, 'dialled', ...expressions)
const arriving = (...expressions: readonly Expression[]): Change => rule(TABLE, 'arriving', ...expressions)

/**
 * Loopback belongs to the sandbox, so its servers work on every port. Only DNS goes to the door, at every address.
 *
 * UDP is refused on input, not on output: then a program gets ECONNREFUSED at once, not EPERM, and does not wait for a
 * timeout. Recording and refusing are separate rules, because a full set ends its rule.
 */
export const RULES: readonly Change[] = [
  table(TABLE),
  destinations(TABLE, REFUSED.ip, MAX_REFUSED),
  destinations(TABLE, REFUSED.ip6, MAX_REFUSED),
  chain(TABLE, 'dialled', { type: 'nat', at: 'output', priority: -100 }),
  dialled(toPort('udp', DNS_PORT), redirect('ip', LOOPBACK.ip, DNS_PORT)),
  dialled(toPort('udp', DNS_PORT), redirect('ip6', LOOPBACK.ip6, DNS_PORT)),
  dialled(toLoopback.ip, toPort('tcp', DNS_PORT), redirect('ip', LOOPBACK.ip, DNS_PORT)),
  dialled(toLoopback.ip, leave),
  dialled(toLoopback.ip6, leave),
  dialled(ofProtocol('tcp'), redirectPort(CATCH_ALL_PORT)),
  chain(TABLE, 'arriving', { type: 'filter', at: 'input', priority: 0 }),
  arriving(isReply, accept),
  arriving(toLoopback.ip, toPort('tcp', CATCH_ALL_PORT), reset),
  arriving(toLoopback.ip6, toPort('tcp', CATCH_ALL_PORT), reset),
  arriving(toLoopback.ip, accept),
  arriving(toLoopback.ip6, accept),
  arriving(ofFamily('ip'), ofProtocol('udp'), addDestination(REFUSED.ip)),
  arriving(ofFamily('ip6'), ofProtocol('udp'), addDestination(REFUSED.ip6)),
  arriving(ofProtocol('udp'), unreachable),
]

/**
 * Settings of the namespace. The first one keeps the sandbox off the door's ports, because an engine may allow everyone
 * to bind below 1024. Without tcp_tw_reuse, one address fails after 28,000 connections. Without the timeouts, ended
 * connections fill the conntrack table and the kernel drops new ones.
 */
export const SETTINGS = {
  '/proc/sys/net/ipv4/ip_unprivileged_port_start': '1024',
  '/proc/sys/net/ipv4/tcp_tw_reuse': '1',
  '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait': '1',
  '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close': '1',
}

/** A host without IPv6 may disable it in every new namespace. Here it is safe, because it leads only to the door. */
export const IPV6_SETTINGS = {
  '/proc/sys/net/ipv6/conf/all/disable_ipv6': '0',
  '/proc/sys/net/ipv6/conf/lo/disable_ipv6': '0',
}
