/** Answers of the hostile name server outside. Each name is one way to redirect an allowed name. */
import { GROUPS } from '../../../src/policy/network/groups.ts'
import { PRESETS } from '../../../src/policy/presets.ts'
import type { Zone } from '../../gateway/dns-server.ts'

export const UP = '198.51.100.10'
export const EVIL = '198.51.100.66'
export const UP6 = '2600:beef:0:0:0:0:0:10'
/** The host's own address on the link between the two namespaces. */
export const OWN = '192.0.2.1'
export const OWN6 = '2600:cafe:0:0:0:0:0:1'
export const NAME_SERVER = '192.0.2.2'

/** Names that lead to forbidden addresses, and the reason that pen must give. */
export const LOCAL_PLACES: Readonly<Record<string, Zone>> = {
  'loopback.test': { a: ['127.0.0.1'] },
  'loopback-far.test': { a: ['127.9.9.9'] },
  'zero.test': { a: ['0.0.0.0'] },
  'private-ten.test': { a: ['10.1.2.3'] },
  'private-172.test': { a: ['172.16.0.1'] },
  'private-192.test': { a: ['192.168.1.1'] },
  'cgnat.test': { a: ['100.64.0.1'] },
  'link-local.test': { a: ['169.254.7.7'] },
  'metadata.test': { a: ['169.254.169.254'] },
  'metadata-other.test': { a: ['100.100.100.200'] },
  'benchmark.test': { a: ['198.18.0.1'] },
  'multicast.test': { a: ['224.0.0.251'] },
  'reserved.test': { a: ['240.0.0.1'] },
  'broadcast.test': { a: ['255.255.255.255'] },
  'own.test': { a: [OWN] },
  'own-six.test': { aaaa: [OWN6] },
  'six-loopback.test': { aaaa: ['0:0:0:0:0:0:0:1'] },
  'six-any.test': { aaaa: ['0:0:0:0:0:0:0:0'] },
  'six-local.test': { aaaa: ['fd00:0:0:0:0:0:0:1'] },
  'six-link.test': { aaaa: ['fe80:0:0:0:0:0:0:1'] },
  'six-mapped.test': { aaaa: ['0:0:0:0:0:ffff:7f00:1'] },
  'six-mapped-out.test': { aaaa: ['0:0:0:0:0:ffff:c633:6442'] },
  'six-compatible.test': { aaaa: ['0:0:0:0:0:0:7f00:1'] },
  'six-nat64.test': { aaaa: ['64:ff9b:0:0:0:0:7f00:1'] },
  'six-to-four.test': { aaaa: ['2002:7f00:1:0:0:0:0:0'] },
  'six-teredo.test': { aaaa: ['2001:0:0:0:0:0:80ff:fffe'] },
  'six-metadata.test': { aaaa: ['fd00:ec2:0:0:0:0:0:254'] },
  'six-documentation.test': { aaaa: ['2001:db8:0:0:0:0:0:1'] },
  'alias-loopback.test': { cname: 'loopback.test' },
  'alias-metadata.test': { cname: 'metadata.test' },
}

/** Names without a usable answer. */
export const BROKEN: Readonly<Record<string, Zone>> = {
  'other-id.test': { a: [UP], lie: 'other-id' },
  'other-question.test': { a: [UP], lie: 'other-question' },
  'truncated.test': { a: [UP], lie: 'truncated' },
  'circle.test': { lie: 'loop' },
  'pointer-circle.test': { lie: 'pointer-loop' },
  'silent.test': { lie: 'silent' },
  'servfail.test': { lie: 'servfail' },
  'absent.test': { lie: 'nxdomain' },
}

/** The hosts that pen ships: outside, all of them are ours. */
export const SHIPPED_HOSTS = [
  ...new Set(
    [
      ...Object.values(GROUPS).flatMap(group => group.hosts ?? []),
      ...Object.values(PRESETS).flatMap(({ hosts }) => hosts),
    ].map(({ rule }) => /([^ /]+):\d+/.exec(rule)?.[1] ?? rule),
  ),
]

/** Endpoints of AWS that check signatures. */
export const AWS_HOSTS = ['s3', 'bucket.s3', 'sts'].map(name => `${name}.us-east-1.amazonaws.com`)

/** Two queries for each lookup: one per address family. */
let turn = 0

export const ZONES: Readonly<Record<string, Zone>> = {
  ...LOCAL_PLACES,
  ...BROKEN,
  'allowed.test': { a: [UP] },
  // Names that the documentation uses.
  'example.com': { a: [UP] },
  'registry.example.com': { a: [UP] },
  'api.example.com': { a: [UP] },
  ...Object.fromEntries(SHIPPED_HOSTS.map(name => [name, { a: [UP] }])),
  ...Object.fromEntries(AWS_HOSTS.map(name => [name, { a: [UP] }])),
  'git.allowed.test': { a: [UP] },
  'six.test': { aaaa: [UP6] },
  'both.test': { a: [UP], aaaa: [UP6] },
  'evil.test': { a: [EVIL] },
  // A good address first, then the host's own, with a TTL of zero.
  'rebind.test': { a: () => [(turn++ >> 1) % 2 === 0 ? UP : '127.0.0.1'], ttl: 0 },
  'mixed.test': { a: ['127.0.0.1', '169.254.169.254', UP, '10.0.0.1'] },
  'many.test': { a: [...Array.from({ length: 60 }, (_, i) => `10.0.0.${i}`), UP] },
  'alias-out.test': { cname: 'evil.test' },
  'forever.test': { a: [UP], ttl: 0x7fffffff },
}
