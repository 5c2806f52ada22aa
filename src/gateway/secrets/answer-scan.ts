/**
 * Replaces values of secrets in an answer by their placeholders. A server may repeat what it was sent. Value and
 * placeholder have one length, so the framing of the answer stays true. The last bytes always wait, as many as a value
 * could need. A wait that depends on the bytes would show a program inside whether its guess is right.
 */
export interface Pair {
  readonly value: string
  readonly placeholder: string
}

/** How long bytes wait for the next ones in an answer that stays open. */
export const PATIENCE_MS = 30

interface Match {
  readonly at: number
  readonly placeholder: string
}

export class AnswerScan {
  readonly #pairs: readonly Pair[]
  /** How many bytes wait: one less than the longest value. */
  readonly #hold: number
  /** The last bytes as they came. The first `#passed` of them have passed, and may begin a value that ends later. */
  #bytes: Buffer = EMPTY
  #passed = 0

  constructor(pairs: readonly Pair[]) {
    this.#pairs = pairs.map(({ value, placeholder }) => ({
      value,
      placeholder: placeholder.length === value.length ? placeholder : '*'.repeat(value.length),
    }))
    this.#hold = Math.max(1, ...pairs.map(({ value }) => value.length)) - 1
  }

  /** How many bytes wait. */
  get waiting(): number {
    return this.#bytes.length - this.#passed
  }

  /** For a field of a head. */
  text(text: string): string {
    const matches = this.#matches((value, from) => text.indexOf(value, from))
    if (matches.length === 0) return text
    const out = text.split('')
    for (const { at, placeholder } of matches) out.splice(at, placeholder.length, ...placeholder)
    return out.join('')
  }

  /** Whether the name of a field has a value. HTTP/2 has names in lower case. */
  isInName(name: string): boolean {
    const lower = name.toLowerCase()
    return this.#pairs.some(({ value }) => lower.includes(value.toLowerCase()))
  }

  /** The bytes that may pass now. */
  next(piece: Buffer): Buffer {
    this.#bytes = Buffer.concat([this.#bytes, piece])
    return this.#pass(Math.max(0, this.waiting - this.#hold))
  }

  /** All bytes that wait: at the end of the answer, or when no more came for some time. */
  rest(): Buffer {
    return this.#pass(this.waiting)
  }

  /** For bytes that someone else holds: `held` begins with those that wait here. Replaces the bytes that may pass. */
  settle(held: Buffer, isLate: boolean): number {
    const settled = this.next(held.subarray(this.waiting))
    const out = isLate ? Buffer.concat([settled, this.rest()]) : settled
    out.copy(held)
    return out.length
  }

  #pass(count: number): Buffer {
    if (count === 0) return EMPTY
    const out = Buffer.from(this.#bytes)
    for (const { at, placeholder } of this.#matches((value, from) => out.indexOf(value, from, 'latin1')))
      out.write(placeholder, at, 'latin1')
    const end = this.#passed + count
    const settled = out.subarray(this.#passed, end)
    const kept = Math.max(0, end - this.#hold)
    this.#bytes = this.#bytes.subarray(kept)
    this.#passed = end - kept
    return settled
  }

  /** In the order in which they are written: of values that overlap, the first and longest is written last. */
  #matches(find: (value: string, from: number) => number): Match[] {
    const found: Match[] = []
    for (const { value, placeholder } of this.#pairs)
      for (let at = find(value, 0); at !== -1; at = find(value, at + 1)) found.push({ at, placeholder })
    return found.sort((a, b) => b.at - a.at || a.placeholder.length - b.placeholder.length)
  }
}

const EMPTY = Buffer.alloc(0)
