/**
 * A small mutation fuzzer for code that reads bytes of a project or a sandbox.
 *
 *   fuzz('the reader of X never crashes', { seeds: ['{}'], run: input => readX(input) })
 *
 * Each input depends only on the seed and its own number, so the `FUZZ_SEED=seed:number` that a failure prints
 * replays that one input. `FUZZ_SECONDS` makes every target run longer.
 */
import { test } from 'bun:test'
import { mutate } from './mutate.ts'
import { prng } from './prng.ts'

export interface Target {
  readonly seeds: readonly (string | Uint8Array)[]
  /** Words of the grammar, inserted whole. */
  readonly dictionary?: readonly (string | Uint8Array)[]
  /** Throws when an invariant is broken. It must catch the errors that the reader may throw. */
  readonly run: (input: Uint8Array) => void
  readonly seconds?: number
  readonly maxRuns?: number
  readonly maxBytes?: number
  /** Maximum time of a single input, three times in a row. */
  readonly maxMillis?: number
}

export interface Replay {
  readonly seed: number
  /** Only this input, not the whole sequence. */
  readonly only?: number
}

/** Registers a test that searches for an input on which `run` throws. */
export function fuzz(name: string, target: Target): void {
  const { FUZZ_SECONDS } = process.env
  const seconds = Number(FUZZ_SECONDS ?? target.seconds ?? 1)
  // A longer hunt is limited by its time alone.
  const maxRuns = FUZZ_SECONDS === undefined ? (target.maxRuns ?? 500_000) : Number.POSITIVE_INFINITY
  test(name, () => void hunt({ ...target, seconds, maxRuns }, replayFromEnv()), (seconds + 30) * 1000)
}

function replayFromEnv(): Replay {
  const { FUZZ_SEED } = process.env
  if (FUZZ_SEED === undefined) return { seed: Math.floor(Math.random() * 2 ** 32) }
  const [, seed, only] = /^([0-9]+)(?::([0-9]+))?$/.exec(FUZZ_SEED) ?? []
  if (seed === undefined) throw new Error('FUZZ_SEED must look like 12345 or 12345:678')
  return only === undefined ? { seed: Number(seed) } : { seed: Number(seed), only: Number(only) }
}

/** Runs the seeds, then mutants of them. Returns the number of inputs; throws at the first that fails. */
export function hunt(target: Target, replay: Replay): number {
  const seeds = target.seeds.map(toBytes)
  const words = (target.dictionary ?? []).map(toBytes)
  const { maxBytes = 4096, maxRuns = 500_000, seconds = 2 } = target
  const inputAt = (n: number): Uint8Array => seeds[n] ?? mutate(prng(replay.seed, n), seeds, words, maxBytes)

  const end = performance.now() + seconds * 1000
  const first = replay.only ?? 0
  const last = replay.only ?? maxRuns - 1
  let n = first
  for (; n <= last && performance.now() < end; n++) {
    const input = inputAt(n)
    const failure = failureOf(target, input)
    if (failure !== undefined) throw report(target, input, failure, `${replay.seed}:${n}`)
  }
  return n - first
}

function failureOf(target: Target, input: Uint8Array): Error | undefined {
  const { maxMillis = 250 } = target
  let fastest = Number.POSITIVE_INFINITY
  // A busy machine may be slow once. A slow reader is slow each time.
  for (let attempt = 0; attempt < 3 && fastest > maxMillis; attempt++) {
    const start = performance.now()
    try {
      // A copy, so that a reader that writes into its input cannot spoil the report.
      target.run(input.slice())
    } catch (error) {
      return error instanceof Error ? error : new Error(`threw ${String(error)}`)
    }
    fastest = Math.min(fastest, performance.now() - start)
  }
  return fastest > maxMillis ? new Error(`took ${Math.round(fastest)} ms`) : undefined
}

function report(target: Target, input: Uint8Array, failure: Error, replay: string): Error {
  const small = shrink(input, candidate => failureOf(target, candidate) !== undefined)
  const lines = [
    failure.message,
    `replay with FUZZ_SEED=${replay}`,
    `${small.length} of ${input.length} bytes still fail, in hex: ${Buffer.from(small).toString('hex')}`,
  ]
  return new Error(lines.join('\n'), { cause: failure })
}

/** Drops ever smaller pieces while the rest still fails. Bounded, so not always minimal. */
function shrink(input: Uint8Array, fails: (candidate: Uint8Array) => boolean): Uint8Array {
  const end = performance.now() + 2000
  let best = input
  for (let size = best.length >> 1; size >= 1; size >>= 1) {
    for (let at = 0; at < best.length && performance.now() < end; ) {
      const candidate = Buffer.concat([best.subarray(0, at), best.subarray(at + size)])
      if (fails(candidate)) best = candidate
      else at += size
    }
  }
  return best
}

const toBytes = (part: string | Uint8Array): Uint8Array =>
  typeof part === 'string' ? new TextEncoder().encode(part) : part
