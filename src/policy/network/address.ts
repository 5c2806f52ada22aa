import { type Parsed, refuse } from '../source.ts'

declare const brand: unique symbol

/**
 * An IP address in canonical form: a dotted quad, or IPv6 by RFC 5952, in hexadecimal and without a zone. Only this file
 * makes one.
 */
export type Address = string & { readonly [brand]: 'Address' }

/**
 * Accepts only what every resolver reads the same way: four decimal numbers without leading zeros, or IPv6 without a zone.
 * Hostile spellings such as `0177.0.0.1`, `127.1` and `::1%x.allowed.test` are refused here.
 */
export function parseAddress(text: string): Parsed<Address> {
  const bytes = readAddress(text)
  if (bytes !== undefined) return { ok: true, value: printAddress(bytes) }
  if (text.includes('%')) return refuse('an address has no zone id')
  return refuse('not an IP address: IPv4 is four decimal numbers, IPv6 is hexadecimal with colons')
}

/** The 4 or 16 bytes of an address. */
export function addressBytes(address: Address): readonly number[] {
  return readAddress(address) ?? []
}

export function printAddress(bytes: readonly number[]): Address {
  return (bytes.length === 4 ? bytes.join('.') : printGroups(bytes)) as Address
}

/** The bytes of 127.0.0.1 and ::1. */
export const LOOPBACK = { ip: [127, 0, 0, 1], ip6: [...Array<number>(15).fill(0), 1] } as const

export function isIPv6(address: Address): boolean {
  return address.includes(':')
}

/** Also used for the address part of a network such as `10.0.0.0/8`. */
export function readAddress(text: string): number[] | undefined {
  return text.includes(':') ? readIPv6(text) : readIPv4(text)
}

const QUAD = /^(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})$/

function readIPv4(text: string): number[] | undefined {
  const bytes = QUAD.exec(text)?.slice(1).map(Number)
  return bytes?.every(byte => byte <= 255) ? bytes : undefined
}

function readIPv6(text: string): number[] | undefined {
  if (text.length > 45) return undefined
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const head = readGroups(halves[0] ?? '', halves.length === 1)
  const tail = halves.length === 2 ? readGroups(halves[1] ?? '', true) : []
  if (head === undefined || tail === undefined) return undefined
  const missing = 16 - head.length - tail.length
  // "::" means at least one group of zeros.
  if (halves.length === 2 ? missing < 2 : missing !== 0) return undefined
  return [...head, ...new Array<number>(missing).fill(0), ...tail]
}

/** Groups between single colons. The last one may be a dotted quad. */
function readGroups(text: string, last: boolean): number[] | undefined {
  if (text === '') return []
  const bytes: number[] = []
  const groups = text.split(':')
  for (const [i, group] of groups.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16)
      bytes.push(value >> 8, value & 0xff)
      continue
    }
    const quad = last && i === groups.length - 1 ? readIPv4(group) : undefined
    if (quad === undefined) return undefined
    bytes.push(...quad)
  }
  return bytes.length <= 16 ? bytes : undefined
}

/** RFC 5952: lower case, no leading zeros, and "::" for the first longest run of two or more zero groups. */
function printGroups(bytes: readonly number[]): string {
  const groups: number[] = []
  for (let i = 0; i < 16; i += 2) groups.push(((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0))
  let start = -1
  let length = 1
  for (let i = 0; i < 8; i++) {
    let end = i
    while (end < 8 && groups[end] === 0) end++
    if (end - i > length) {
      start = i
      length = end - i
    }
    i = Math.max(i, end - 1)
  }
  const show = (part: readonly number[]): string => part.map(group => group.toString(16)).join(':')
  return start === -1
    ? show(groups)
    : `${show(groups.slice(0, start))}::${show(groups.slice(start + length))}`
}
