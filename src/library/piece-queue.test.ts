import { describe, expect, test } from 'bun:test'
import { PieceQueue } from './piece-queue.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)

async function all(queue: PieceQueue): Promise<string[]> {
  const seen: string[] = []
  for await (const piece of queue.read())
    seen.push(`${piece.stream} ${new TextDecoder().decode(piece.bytes)}`)
  return seen
}

describe('output that is read while the command runs', () => {
  test('pauses the writer until it is taken, and keeps its order', async () => {
    const queue = new PieceQueue(10)
    let taken = false
    const put = queue.put('stdout', bytes('a'))?.then(() => {
      taken = true
    })
    await Promise.resolve()
    expect(taken).toBe(false)
    void queue.put('stderr', bytes('b'))
    queue.end()
    expect(await all(queue)).toEqual(['stdout a', 'stderr b'])
    await put
  })

  test('flows without a reader, and a later reader gets it within its bound', async () => {
    const queue = new PieceQueue(4)
    const waiting = queue.put('stdout', bytes('ab'))
    queue.flow()
    await waiting
    for (const text of ['cd', 'e']) expect(queue.put('stdout', bytes(text))).toBeUndefined()
    queue.end()
    expect(await all(queue)).toEqual(['stdout ab', 'stdout cd'])
  })

  test('is dropped when the reader stops', async () => {
    const queue = new PieceQueue(10)
    void queue.put('stdout', bytes('a'))
    const second = queue.put('stdout', bytes('b'))
    for await (const _ of queue.read()) break
    await second
    expect(queue.put('stdout', bytes('c'))).toBeUndefined()
  })
})
