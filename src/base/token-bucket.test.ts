import { describe, expect, test } from 'bun:test'
import { TokenBucket } from './token-bucket.ts'

describe('a token bucket', () => {
  test('gives its burst at once, then tokens as time passes', () => {
    const bucket = new TokenBucket(10, 10)
    const taken = (now: number): number =>
      Array.from({ length: 100 }, () => bucket.take(now)).filter(Boolean).length
    // A whole number, so that the sums below are exact.
    const start = Math.ceil(performance.now())
    expect(taken(start)).toBe(10)
    expect(taken(start)).toBe(0)
    expect(taken(start + 500)).toBe(5)
    expect(taken(start + 60_000)).toBe(10)
  })

  test('lets callers wait in order when it is empty', async () => {
    const bucket = new TokenBucket(2, 100)
    const began = performance.now()
    const order: number[] = []
    await Promise.all([0, 1, 2, 3].map(i => bucket.wait().then(() => order.push(i))))
    expect(order).toEqual([0, 1, 2, 3])
    expect(performance.now() - began).toBeGreaterThanOrEqual(15)
  })
})
