import { type Parsed, refuse } from '../source.ts'

declare const brand: unique symbol

/** A TCP port, 1–65535. Only `parsePort` makes one. */
export type Port = number & { readonly [brand]: 'Port' }

export const HTTP_PORT = 80 as Port
export const HTTPS_PORT = 443 as Port

/** Accepts only plain digits, because number parsers disagree about `0x1bb`, `4.43e2`, ` 443` and `00443`. */
export function parsePort(text: string): Parsed<Port> {
  if (text === '') return refuse('the port is missing after the colon')
  if (/^[1-9][0-9]{0,4}$/.test(text)) {
    const port = Number(text)
    if (port <= 65535) return { ok: true, value: port as Port }
  }
  if (text === '*') return refuse('a port cannot be a star', 'write one entry for each port')
  if (/^[0-9]+(?:[-,][0-9]+)+$/.test(text))
    return refuse('an entry has one port', 'write one entry for each port')
  return refuse('a port is a number from 1 to 65535, in plain digits without leading zero')
}
