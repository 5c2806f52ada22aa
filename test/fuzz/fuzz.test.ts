import { expect, test } from 'bun:test'
import { hunt, type Target } from './fuzz.ts'
import { prng } from './prng.ts'

const planted: Target = {
  seeds: ['hello world'],
  dictionary: ['needle'],
  seconds: 20,
  run: input => {
    if (Buffer.from(input).includes('needle')) throw new Error('found it')
  },
}

function messageOf(action: () => void): string {
  try {
    action()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return ''
}

test('a planted bug is found and reduced to the bytes that matter', () => {
  const message = messageOf(() => hunt(planted, { seed: 1 }))
  expect(message).toContain('found it')
  expect(message).toContain(`6 of`)
  expect(message).toContain(Buffer.from('needle').toString('hex'))
})

test('the replay that a failure prints finds the same input at once', () => {
  const message = messageOf(() => hunt(planted, { seed: 2 }))
  const [, seed, only] = /FUZZ_SEED=([0-9]+):([0-9]+)/.exec(message) ?? []
  const again = messageOf(() => hunt(planted, { seed: Number(seed), only: Number(only) }))
  expect(seed).toBe('2')
  expect(again).toBe(message)
})

test('a reader that is always slow fails, and one that is slow once does not', () => {
  let runs = 0
  const wait = (ms: number) => {
    const end = performance.now() + ms
    while (performance.now() < end);
  }
  const slow = { seeds: ['x'], maxRuns: 1, maxMillis: 20 }
  expect(messageOf(() => hunt({ ...slow, run: () => wait(40) }, { seed: 1 }))).toMatch(/took [0-9]+ ms/)
  expect(hunt({ ...slow, run: () => wait(runs++ === 0 ? 40 : 0) }, { seed: 1 })).toBe(1)
})

test('a correct reader passes, after every seed was run unchanged', () => {
  const seen = new Set<string>()
  const seeds = ['one', 'two', 'three']
  const run = (input: Uint8Array) => void seen.add(Buffer.from(input).toString('latin1'))
  expect(hunt({ seeds, run, maxRuns: 100 }, { seed: 3 })).toBe(100)
  expect(seeds.every(seed => seen.has(seed))).toBe(true)
  expect(seen.size).toBeGreaterThan(60)
})

test('a hunt ends at its time, and no input is longer than its bound', () => {
  const start = performance.now()
  const run = (input: Uint8Array) => expect(input.length).toBeLessThanOrEqual(16)
  hunt({ seeds: ['0123456789'], run, seconds: 0.1, maxBytes: 16 }, { seed: 4 })
  expect(performance.now() - start).toBeLessThan(2000)
})

test('the same seed gives the same stream, and another seed another', () => {
  const take = (seed: number, stream: number) => {
    const random = prng(seed, stream)
    return Array.from({ length: 8 }, () => random.below(1000)).join()
  }
  expect(take(1, 1)).toBe(take(1, 1))
  expect(new Set([take(1, 1), take(1, 2), take(2, 1), take(2, 2), take(0, 0)]).size).toBe(5)
})
