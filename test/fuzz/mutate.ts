/** One mutant: a seed with one to eight random changes. */
import type { Prng } from './prng.ts'

type Change = (random: Prng, input: Uint8Array, pool: Pool) => Uint8Array

interface Pool {
  readonly seeds: readonly Uint8Array[]
  readonly words: readonly Uint8Array[]
}

const EMPTY = new Uint8Array()

export function mutate(
  random: Prng,
  seeds: readonly Uint8Array[],
  words: readonly Uint8Array[],
  maxBytes: number,
): Uint8Array {
  const pool = { seeds, words }
  let input = seeds[random.below(seeds.length)] ?? EMPTY
  // Few changes keep most of the grammar and reach deep branches. Many changes break it at once.
  const changes = 1 + random.below(1 + random.below(8))
  for (let i = 0; i < changes; i++) input = random.pick(CHANGES)(random, input, pool)
  return input.length > maxBytes ? input.slice(0, maxBytes) : input
}

const CHANGES: readonly [Change, ...Change[]] = [
  function flipBit(random, input) {
    const copy = input.slice()
    const at = random.below(copy.length)
    if (copy.length > 0) copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8))
    return copy
  },
  function setByte(random, input) {
    return splice(input, random.below(input.length), 1, byte(random))
  },
  function insertByte(random, input) {
    return splice(input, random.below(input.length + 1), 0, byte(random))
  },
  function insertWord(random, input, { words }) {
    return splice(input, random.below(input.length + 1), 0, words[random.below(words.length)] ?? byte(random))
  },
  function replaceByWord(random, input, { words }) {
    const word = words[random.below(words.length)] ?? byte(random)
    return splice(input, random.below(input.length), random.below(8), word)
  },
  function remove(random, input) {
    return splice(input, random.below(input.length), 1 + random.below(16), EMPTY)
  },
  function truncate(random, input) {
    return input.slice(0, random.below(input.length + 1))
  },
  function repeat(random, input) {
    const part = piece(random, input)
    const times = 1 + random.below(random.below(4) === 0 ? 64 : 2)
    return splice(input, random.below(input.length + 1), 0, Buffer.concat(Array(times).fill(part)))
  },
  function crossOver(random, input, { seeds }) {
    const other = seeds[random.below(seeds.length)] ?? EMPTY
    return splice(input, random.below(input.length + 1), random.below(16), piece(random, other))
  },
  function overwrite(random, input) {
    const half = random.below(input.length)
    const part = piece(random, input.subarray(0, half))
    return splice(input, half, part.length, part)
  },
]

function splice(input: Uint8Array, at: number, drop: number, add: Uint8Array): Uint8Array {
  return Buffer.concat([input.subarray(0, at), add, input.subarray(at + drop)])
}

function piece(random: Prng, from: Uint8Array): Uint8Array {
  const start = random.below(from.length)
  return from.slice(start, start + 1 + random.below(32))
}

/** Edges of ranges more often than the middle. */
function byte(random: Prng): Uint8Array {
  const edges = [
    0, 9, 10, 13, 32, 34, 45, 46, 47, 48, 57, 92, 127, 128, 191, 192, 237, 239, 244, 255,
  ] as const
  return Uint8Array.of(random.below(2) === 0 ? random.pick(edges) : random.below(256))
}
