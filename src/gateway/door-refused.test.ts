import { describe, expect, test } from 'bun:test'
import { readRefused } from './door-refused.ts'

const listing = (...items: object[]) =>
  JSON.stringify({ nftables: [{ metainfo: { version: '1' } }, ...items] })
const set = (name: string, ...elements: unknown[]) => ({ set: { family: 'inet', name, elem: elements } })
const pair = (address: unknown, port: unknown) => ({ concat: [address, port] })

describe('what nft says it refused', () => {
  test('is read from both sets, each address in its one spelling', () => {
    const text = listing(
      set('refused4', pair('192.0.2.1', 443), pair('192.0.2.1', 123)),
      set('refused6', pair('2001:0db8::0:1', 443)),
    )
    expect(readRefused(text).map(({ address, port }) => `${address} ${port}`)).toEqual([
      '192.0.2.1 443',
      '192.0.2.1 123',
      '2001:db8::1 443',
    ])
  })

  test('is nothing when the sets are empty, or are not ours', () => {
    expect(readRefused(listing({ set: { name: 'refused4' } }, { chain: { name: 'dialled' } }))).toEqual([])
    expect(readRefused(listing(set('other', pair('192.0.2.1', 443))))).toEqual([])
  })

  test('is an error when it cannot be read: it must not pass for nothing', () => {
    for (const text of ['', '[]', '{}', '{"nftables":{}}']) expect(() => readRefused(text)).toThrow()
    for (const element of [
      7,
      pair('192.0.2.1', 0),
      pair('192.0.2.1', 'https'),
      pair('nowhere', 443),
      { concat: 1 },
    ])
      expect(() => readRefused(listing(set('refused4', element)))).toThrow()
  })
})
