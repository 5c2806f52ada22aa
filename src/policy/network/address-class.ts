import { type Address, addressBytes, printAddress, readAddress } from './address.ts'

/** The kind of an address. For a name, pen dials only `public` addresses; see `docs/decisions`. */
export type AddressClass =
  | 'public'
  | 'unspecified'
  | 'loopback'
  | 'private'
  | 'link-local'
  | 'metadata'
  | 'cgnat'
  | 'multicast'
  | 'broadcast'
  | 'benchmark'
  | 'documentation'
  | 'embedded-v4'
  | 'reserved'

/**
 * The longest matching network decides. The three IPv4 TEST-NETs have no entry, so they may be dialled.
 * For IPv6 everything is reserved, except the block that is assigned.
 */
const NETWORKS: Readonly<Record<string, AddressClass>> = {
  '0.0.0.0/0': 'public',
  '0.0.0.0/8': 'unspecified',
  '10.0.0.0/8': 'private',
  '100.64.0.0/10': 'cgnat',
  '100.100.100.200/32': 'metadata',
  '127.0.0.0/8': 'loopback',
  '168.63.129.16/32': 'metadata',
  '169.254.0.0/16': 'link-local',
  '169.254.0.23/32': 'metadata',
  '169.254.42.42/32': 'metadata',
  '169.254.169.254/32': 'metadata',
  '169.254.170.2/32': 'metadata',
  '169.254.170.23/32': 'metadata',
  '172.16.0.0/12': 'private',
  '192.0.0.0/24': 'reserved',
  '192.0.0.192/32': 'metadata',
  '192.88.99.0/24': 'reserved',
  '192.168.0.0/16': 'private',
  '198.18.0.0/15': 'benchmark',
  '224.0.0.0/4': 'multicast',
  '240.0.0.0/4': 'reserved',
  '255.255.255.255/32': 'broadcast',

  '::/0': 'reserved',
  '::/96': 'embedded-v4',
  '::/128': 'unspecified',
  '::1/128': 'loopback',
  '::ffff:0:0/96': 'embedded-v4',
  '::ffff:0:0:0/96': 'embedded-v4',
  '64:ff9b::/96': 'embedded-v4',
  '64:ff9b:1::/48': 'embedded-v4',
  '100::/64': 'reserved',
  '2000::/3': 'public',
  '2001::/23': 'reserved',
  '2001::/32': 'embedded-v4',
  '2001:2::/48': 'benchmark',
  '2001:db8::/32': 'documentation',
  '2002::/16': 'embedded-v4',
  '3fff::/20': 'documentation',
  '5f00::/16': 'reserved',
  'fc00::/7': 'private',
  'fd00:42::42/128': 'metadata',
  'fd00:ec2::23/128': 'metadata',
  'fd00:ec2::254/128': 'metadata',
  'fd20:ce::254/128': 'metadata',
  'fe80::/10': 'link-local',
  'fec0::/10': 'reserved',
  'ff00::/8': 'multicast',
}

export function classifyAddress(address: Address): AddressClass {
  const bytes = addressBytes(address)
  let best: Network | undefined
  for (const network of networks())
    if (network.bits > (best?.bits ?? -1) && contains(network, bytes)) best = network
  // No network matches: no parser made these bytes. The zero value denies.
  return best?.class ?? 'reserved'
}

/** The IPv4 address embedded in an IPv6 address. For messages only, never for dialling. */
export function embeddedIPv4(address: Address): Address | undefined {
  const bytes = addressBytes(address)
  if (bytes.length !== 16 || classifyAddress(address) !== 'embedded-v4') return undefined
  if (bytes[0] === 0x20 && bytes[1] === 0x02) return printAddress(bytes.slice(2, 6))
  if (bytes[0] === 0x20) return printAddress(bytes.slice(12).map(byte => byte ^ 0xff))
  return printAddress(bytes.slice(12))
}

interface Network {
  readonly bytes: readonly number[]
  readonly bits: number
  readonly class: AddressClass
}

let table: readonly Network[] | undefined

/** Built on first use, because most runs never classify an address. */
function networks(): readonly Network[] {
  table ??= Object.entries(NETWORKS).map(([text, kind]) => {
    const slash = text.indexOf('/')
    return {
      bytes: readAddress(text.slice(0, slash)) ?? [],
      bits: Number(text.slice(slash + 1)),
      class: kind,
    }
  })
  return table
}

function contains(network: Network, bytes: readonly number[]): boolean {
  if (network.bytes.length !== bytes.length) return false
  for (let i = 0, left = network.bits; left > 0; i++, left -= 8) {
    const mask = left >= 8 ? 0xff : 0xff & (0xff << (8 - left))
    if (((network.bytes[i] ?? 0) & mask) !== ((bytes[i] ?? 0) & mask)) return false
  }
  return true
}
