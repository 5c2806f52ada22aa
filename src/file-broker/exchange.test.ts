import { expect, test } from 'bun:test'
import { Exchange } from './exchange.ts'

test('P13 content that arrives byte by byte is kept in few pieces, and stays the same', async () => {
  const exchange = new Exchange({ send: () => undefined, room: async () => undefined })
  const content = Buffer.alloc(200_000).map((_, i) => i * 7)
  for (let i = 0; i < content.length; i++) exchange.received(content.subarray(i, i + 1))
  exchange.completed()
  const pieces: Uint8Array[] = []
  for (let piece = await exchange.nextData(); piece !== undefined; piece = await exchange.nextData())
    pieces.push(piece)
  expect(Buffer.concat(pieces).equals(content)).toBe(true)
  expect(pieces.length).toBeLessThan(200)
})
