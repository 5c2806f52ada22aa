import { describe, expect, test } from 'bun:test'
import { type Address, printAddress } from '../../policy/network/address.ts'
import type { Host } from '../../policy/network/host.ts'
import { NameTable } from './names.ts'

const host = (i: number | string): Host => `h${i}.test` as Host
const address = (text: string): Address => text as Address

/** Undefined when the pool is used up. */
function addressFor(book: NameTable, name: Host): Address | undefined {
  const number = book.numberFor(name)
  if (number === undefined) return undefined
  return printAddress([...new Uint8Array(new Uint32Array([number]).buffer)].reverse())
}

describe('NameTable', () => {
  test('a name keeps its address, and the address its name', () => {
    const book = new NameTable()
    expect(addressFor(book, host(1))).toBe(address('198.18.0.1'))
    expect(addressFor(book, host(2))).toBe(address('198.18.0.2'))
    expect(addressFor(book, host(1))).toBe(address('198.18.0.1'))
    expect(book.nameOf(address('198.18.0.2'))).toBe(host(2))
  })

  test('an address that no lookup returned has no name', () => {
    const book = new NameTable()
    addressFor(book, host(1))
    for (const text of [
      '198.18.0.0',
      '198.18.0.2',
      '198.17.255.255',
      '198.20.0.1',
      '127.0.0.1',
      '::ffff:198.18.0.1',
      '::1',
    ])
      expect(book.nameOf(address(text))).toBeUndefined()
  })

  test('the whole pool is used once, without its first and last address', () => {
    const book = new NameTable({ reserve: 0 })
    const seen = new Set<Address>()
    for (let i = 0; i < 131_070; i++) seen.add(addressFor(book, host(i)) ?? address(''))
    expect(seen.size).toBe(131_070)
    expect(
      seen.has(address('198.18.0.0')) || seen.has(address('198.19.255.255')) || seen.has(address('')),
    ).toBe(false)
    expect(seen.has(address('198.19.255.254'))).toBe(true)
    expect(addressFor(book, host('more'))).toBeUndefined()
    expect(addressFor(book, host(77))).toBe(address('198.18.0.78'))
    expect(book.nameOf(address('198.19.255.254'))).toBe(host(131_069))
  })

  test('names that a rule allows get an address even when the pool is used up', () => {
    const book = new NameTable({ maxNames: 10, reserve: 3, isReserved: name => name.startsWith('hgood') })
    for (let i = 0; i < 100; i++) addressFor(book, host(i))
    expect(book.size).toBe(7)
    for (const name of ['good1', 'good2', 'good3']) expect(addressFor(book, host(name))).toBeDefined()
    expect(addressFor(book, host('good4'))).toBeUndefined()
    expect(book.size).toBe(10)
  })

  test('its memory is also limited in characters', () => {
    const book = new NameTable({ maxCharacters: 1000, reserve: 0 })
    for (let i = 0; i < 100; i++) addressFor(book, `${'x'.repeat(200)}${i}.test` as Host)
    expect(book.size).toBe(4)
    expect(addressFor(book, host(1))).toBeDefined()
  })
})
