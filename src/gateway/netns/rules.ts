/**
 * How the namespace answers: which port of the door stands for which port that was dialled. The door's own ports lie
 * below 1024, where a sandbox cannot bind, and nothing else is in a fresh namespace, so they are always free.
 */
import {
  accept,
  type Change,
  chain,
  type DestinationSet,
  destinations,
  type Expression,
  type Family,
  isReply,
  leave,
  note,
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

/** Every TCP port that is dialled anywhere but on loopback ends here. */
export const CATCH_ALL_PORT = 1
export const DNS_PORT = 53

/** Refused UDP destinations that are remembered, for each of IPv4 and IPv6. A hostile sandbox makes no more. */
export const MOST_REFUSED = 4096

export const TABLE = 'pen'

const REFUSED = {
  ip: { name: 'refused4', family: 'ip', id: 1 },
  ip6: { name: 'refused6', family: 'ip6', id: 2 },
} as const satisfies Record<Family, DestinationSet>
export const REFUSED_SETS: readonly string[] = [REFUSED.ip.name, REFUSED.ip6.name]

const LOOPBACK = { ip: [127, 0, 0, 1], ip6: [...Array<number>(15).fill(0), 1] } as const
const toLoopback = { ip: toAddress('ip', [127]), ip6: toAddress('ip6', LOOPBACK.ip6) } as const

const dialled = (...expressions: readonly Expression[]): Change => rule(TABLE, 'dialled', ...expressions)
const arriving = (...expressions: readonly Expression[]): Change => rule(TABLE, 'arriving', ...expressions)

/**
 * Loopback is the sandbox's own: its servers work on every port. Only DNS on loopback is the door's, at whatever address the
 * program believes its resolver to be.
 *
 * UDP is refused where it arrives, not where it leaves: then a program hears ECONNREFUSED at once, not EPERM, and
 * nothing waits. Recording and refusing are two rules, because a full set ends the rule it is in.
 */
export const RULES: readonly Change[] = [
  table(TABLE),
  destinations(TABLE, REFUSED.ip, MOST_REFUSED),
  destinations(TABLE, REFUSED.ip6, MOST_REFUSED),
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
  arriving(ofFamily('ip'), ofProtocol('udp'), note(REFUSED.ip)),
  arriving(ofFamily('ip6'), ofProtocol('udp'), note(REFUSED.ip6)),
  arriving(ofProtocol('udp'), unreachable),
]

export interface Setting {
  readonly file: string
  readonly value: string
}

/**
 * Settings of the namespace alone. An engine may let everybody listen below 1024 in its namespaces, where the door does. Without the second, one address fails after 28,000 connections; without the
 * timeouts, the connections that have ended fill the kernel's table and new ones are dropped.
 */
export const SETTINGS: readonly Setting[] = [
  { file: '/proc/sys/net/ipv4/ip_unprivileged_port_start', value: '1024' },
  { file: '/proc/sys/net/ipv4/tcp_tw_reuse', value: '1' },
  { file: '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait', value: '1' },
  { file: '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close', value: '1' },
]

/** A host that turned IPv6 off may hand that to every new namespace; here it leads nowhere but to the door. */
export const IPV6_SETTINGS: readonly Setting[] = [
  { file: '/proc/sys/net/ipv6/conf/all/disable_ipv6', value: '0' },
  { file: '/proc/sys/net/ipv6/conf/lo/disable_ipv6', value: '0' },
]
