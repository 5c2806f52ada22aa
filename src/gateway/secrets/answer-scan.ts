/**
 * Replaces values of secrets in an answer by their placeholders. A server may repeat what it was sent. Value and
 * placeholder have one length, so the framing of the answer stays true. The last bytes always wait, as many as a value
 * could need. A wait that depends on the bytes would show a program inside whether its guess is right.
 */
import { formsOf, type Pair, type ValueForm } from './value-forms.ts'

/** How long bytes wait for the next ones in an answer that stays open: in a stream of events, and in others. */
export const PATIENCE_MS = 30
export const LONG_PATIENCE_MS = 1000

export class AnswerScan {
  readonly #forms: readonly ValueForm[]
  readonly #lowerForms: readonly ValueForm[]
  /** How many bytes wait: one less than the longest text. */
  readonly #hold: number
  /** The last bytes as they came. The first `#passed` of them have passed, and may begin a value that ends later. */
  #bytes: Buffer = EMPTY
  #passed = 0

  constructor(pairs: readonly Pair[]) {
    this.#forms = pairs.flatMap(pair => formsOf(pair).written)
    this.#lowerForms = pairs.flatMap(pair => formsOf(pair).lower)
    this.#hold = Math.max(1, ...this.#forms.map(({ length }) => length)) - 1
  }

  /** How many bytes wait. */
  get waiting(): number {
    return this.#bytes.length - this.#passed
  }

  /** For a field of a head. */
  text(text: string): string {
    const bytes = Buffer.from(text, 'latin1')
    return this.#replace(bytes) ? bytes.toString('latin1') : text
  }

  /** Whether the name of a field has a value, in any case: names in HTTP/2 are in lower case. */
  isInName(name: string): boolean {
    const lower = Buffer.from(name.toLowerCase(), 'latin1')
    return this.#lowerForms.some(form => form.runs(lower).length > 0)
  }

  /** The bytes that may pass now. */
  next(piece: Buffer): Buffer {
    this.#bytes = Buffer.concat([this.#bytes, piece])
    return this.#pass(Math.max(0, this.waiting - this.#hold))
  }

  /** When no more came for some time: the bytes that wait, but not the begin of a value. */
  late(): Buffer {
    const begun = Math.max(0, ...this.#forms.map(form => form.begun(this.#bytes)))
    return this.#pass(Math.max(0, this.waiting - begun))
  }

  /** All bytes that wait, at the end of the answer. */
  rest(): Buffer {
    return this.#pass(this.waiting)
  }

  /** For bytes that someone else holds: `held` begins with those that wait here. Replaces the bytes that may pass. */
  settle(held: Buffer, when: 'more' | 'late' | 'end'): number {
    const settled = this.next(held.subarray(this.waiting))
    const more = when === 'more' ? EMPTY : when === 'late' ? this.late() : this.rest()
    const out = Buffer.concat([settled, more])
    out.copy(held)
    return out.length
  }

  #pass(count: number): Buffer {
    if (count === 0) return EMPTY
    const out = Buffer.from(this.#bytes)
    this.#replace(out)
    const end = this.#passed + count
    const settled = out.subarray(this.#passed, end)
    const kept = Math.max(0, end - this.#hold)
    this.#bytes = this.#bytes.subarray(kept)
    this.#passed = end - kept
    return settled
  }

  /** In place. Of values that overlap, the first and longest is written last. */
  #replace(bytes: Buffer): boolean {
    const runs = this.#forms.flatMap(form => form.runs(bytes))
    runs.sort((a, b) => b.at - a.at || a.replacement.length - b.replacement.length)
    for (const { at, replacement } of runs) replacement.copy(bytes, at)
    return runs.length > 0
  }
}

const EMPTY = Buffer.alloc(0)
