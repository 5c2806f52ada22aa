/**
 * Replaces values of secrets in an answer by their placeholders. A server may repeat what it was sent. Value and
 * placeholder have one length, so the framing of the answer stays true. Bytes that could be the beginning of a value wait
 * for the next piece. All other bytes pass at once.
 */
interface Pair {
  readonly value: string
  readonly placeholder: string
}

export class AnswerScan {
  readonly #pairs: readonly (Pair & { readonly bytes: Buffer; readonly instead: Buffer })[]
  #carried: Buffer = EMPTY

  constructor(pairs: readonly Pair[]) {
    this.#pairs = pairs.map(pair => ({
      ...pair,
      bytes: Buffer.from(pair.value, 'latin1'),
      instead: Buffer.from(pair.placeholder, 'latin1'),
    }))
  }

  /** For a field of a head. */
  text(text: string): string {
    return this.#pairs.reduce((out, { value, placeholder }) => out.replaceAll(value, () => placeholder), text)
  }

  /** The bytes that may pass now. Changes `piece`, which must be the caller's own. */
  next(piece: Buffer): Buffer {
    const bytes = this.#carried.length === 0 ? piece : Buffer.concat([this.#carried, piece])
    const count = this.settle(bytes)
    this.#carried = count === bytes.length ? EMPTY : Buffer.from(bytes.subarray(count))
    return bytes.subarray(0, count)
  }

  /** The end of the answer: the bytes that still wait. */
  rest(): Buffer {
    const rest = this.#carried
    this.#carried = EMPTY
    return rest
  }

  /** Replaces in place. Returns how many bytes may pass: the rest could be the beginning of a value. */
  settle(bytes: Buffer): number {
    let count = bytes.length
    for (const { bytes: value, instead } of this.#pairs) {
      for (let at = bytes.indexOf(value); at !== -1; at = bytes.indexOf(value, at + value.length))
        instead.copy(bytes, at)
      count = Math.min(count, beginningOf(value, bytes))
    }
    return count
  }
}

/** Where the value may begin in the last bytes; their length if it does not. */
function beginningOf(value: Buffer, bytes: Buffer): number {
  const [first = 0] = value
  const from = Math.max(0, bytes.length - value.length + 1)
  for (let at = bytes.indexOf(first, from); at !== -1; at = bytes.indexOf(first, at + 1))
    if (value.compare(bytes, at, bytes.length, 0, bytes.length - at) === 0) return at
  return bytes.length
}

const EMPTY = Buffer.alloc(0)
