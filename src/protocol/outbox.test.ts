import { expect, test } from 'bun:test'
import { Outbox } from './outbox.ts'

/** A socket that takes this many bytes until it is drained. */
function socket(room: number) {
  const taken: number[] = []
  let left = room
  const outbox = new Outbox(bytes => {
    const some = bytes.subarray(0, left)
    taken.push(...some)
    left -= some.length
    return some.length
  })
  const empty = () => {
    left = room
    outbox.drain()
  }
  return { outbox, taken, empty }
}

test('bytes that a socket does not take wait, in order, and are counted', async () => {
  const { outbox, taken, empty } = socket(4)
  expect(outbox.room()).toBeUndefined()
  outbox.send(Uint8Array.of(1, 2, 3))
  outbox.send(Uint8Array.of(4, 5, 6))
  outbox.send(Uint8Array.of(7))
  expect([taken, outbox.backlog]).toEqual([[1, 2, 3, 4], 3])
  const room = outbox.room()
  empty()
  await room
  expect([taken, outbox.backlog]).toEqual([[1, 2, 3, 4, 5, 6, 7], 0])
})

test('a closed outbox resolves every wait, and writes nothing', async () => {
  const { outbox, taken } = socket(0)
  outbox.send(Uint8Array.of(1))
  const room = outbox.room()
  outbox.close()
  await room
  outbox.send(Uint8Array.of(2))
  expect([taken, outbox.backlog]).toEqual([[], 0])
})
