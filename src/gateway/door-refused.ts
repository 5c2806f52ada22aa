/** Reads the UDP destinations that the rules refused, from what `nft -j list table` prints. */
import { type Address, parseAddress } from '../policy/address.ts'
import { type Port, parsePort } from '../policy/port.ts'
import { REFUSED_SETS } from './door-rules.ts'

export interface RefusedDatagram {
  readonly address: Address
  readonly port: Port
}

/** Throws when the text is not nft's: a record that cannot be read is not an empty one. */
export function readRefused(json: string): readonly RefusedDatagram[] {
  const root = field(JSON.parse(json), 'nftables')
  if (!Array.isArray(root)) throw new TypeError('nft printed no list')
  return root.flatMap((item: unknown) => {
    const set = field(item, 'set')
    const name = field(set, 'name')
    if (!REFUSED_SETS.some(known => known === name)) return []
    const elements = field(set, 'elem') ?? []
    if (!Array.isArray(elements)) throw new TypeError('nft printed a set without a list')
    return elements.map(readElement)
  })
}

function readElement(element: unknown): RefusedDatagram {
  const pair = field(element, 'concat')
  const [address, port]: readonly unknown[] = Array.isArray(pair) ? pair : []
  const parsed = parseAddress(String(address))
  const number = parsePort(String(port))
  if (!parsed.ok || !number.ok) throw new TypeError('nft printed an element that is no address and port')
  return { address: parsed.value, port: number.value }
}

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && name in value ? Reflect.get(value, name) : undefined
