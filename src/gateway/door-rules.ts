/**
 * How the namespace answers: which port of the door stands for which port that was dialled. The door's own ports lie
 * below 1024, where a sandbox cannot bind, and nothing else is in a fresh namespace, so they are always free.
 */

/** Every TCP port that is dialled anywhere but on loopback ends here. */
export const CATCH_ALL_PORT = 1
export const DNS_PORT = 53

/** Refused UDP destinations that are remembered, for each of IPv4 and IPv6. A hostile sandbox makes no more. */
export const MOST_REFUSED = 4096

export const TABLE = 'pen'
export const REFUSED_SETS = ['refused4', 'refused6'] as const

/**
 * The ruleset for `nft -f -`. Loopback is the sandbox's own: its servers work on every port. Only DNS on loopback is
 * the door's, at whatever address the program believes its resolver to be.
 *
 * UDP is refused where it arrives, not where it leaves: then a program hears ECONNREFUSED at once, not EPERM, and
 * nothing waits. Recording and refusing are two rules, because a full set ends the rule it is in.
 */
export const RULES = `table inet ${TABLE} {
  set refused4 { type ipv4_addr . inet_service; size ${MOST_REFUSED}; flags dynamic; }
  set refused6 { type ipv6_addr . inet_service; size ${MOST_REFUSED}; flags dynamic; }
  chain dialled {
    type nat hook output priority -100; policy accept;
    udp dport ${DNS_PORT} dnat ip to 127.0.0.1:${DNS_PORT}
    udp dport ${DNS_PORT} dnat ip6 to [::1]:${DNS_PORT}
    ip daddr 127.0.0.0/8 tcp dport ${DNS_PORT} dnat ip to 127.0.0.1:${DNS_PORT}
    ip daddr 127.0.0.0/8 return
    ip6 daddr ::1 return
    meta l4proto tcp dnat to :${CATCH_ALL_PORT}
  }
  chain arriving {
    type filter hook input priority 0; policy accept;
    ct direction reply accept
    ip daddr 127.0.0.0/8 tcp dport ${CATCH_ALL_PORT} reject with tcp reset
    ip6 daddr ::1 tcp dport ${CATCH_ALL_PORT} reject with tcp reset
    ip daddr 127.0.0.0/8 accept
    ip6 daddr ::1 accept
    meta nfproto ipv4 meta l4proto udp add @refused4 { ip daddr . udp dport }
    meta nfproto ipv6 meta l4proto udp add @refused6 { ip6 daddr . udp dport }
    meta l4proto udp reject
  }
}
`

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
