/** A stream of numbers determined by a seed and a stream number: same pair, same stream, on every machine. */
export interface Prng {
  /** An integer from 0 to `limit` - 1; 0 when the limit is 0. */
  below(limit: number): number
  pick<T>(items: readonly [T, ...T[]]): T
}

export function prng(seed: number, stream: number): Prng {
  let state = scramble((seed >>> 0) ^ scramble((stream + 1) >>> 0))
  const next = (): number => {
    state = (state + 0x9e3779b9) >>> 0
    return scramble(state)
  }
  const below = (limit: number): number => (limit > 0 ? next() % limit : 0)
  return { below, pick: items => items[below(items.length)] ?? items[0] }
}

/** An invertible 32-bit mix, so that neighbouring seeds give different streams. */
function scramble(word: number): number {
  let mixed = word
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
  return (mixed ^ (mixed >>> 15)) >>> 0
}
