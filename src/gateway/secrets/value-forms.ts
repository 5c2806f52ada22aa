/**
 * The texts in which a server may repeat a value: as it is, or encoded as it was sent. Each stands beside the text that
 * replaces it, which has the same length. A long part of such a text counts too, because a server may cut what it repeats.
 */
export interface Pair {
  readonly value: string
  readonly placeholder: string
}

export interface Run {
  readonly at: number
  readonly replacement: Buffer
}

/**
 * A part of a value has at least this many characters, and at least two thirds of it. A program may know how a key begins.
 * With shorter parts it could guess the rest character by character, and see in an answer when it is right.
 */
const LEAST_PART = 22
/** What value and placeholder both begin with is not secret, unless too little would remain. */
const LEAST_SECRET = 16

/**
 * Bytes that wait pass when no more come, unless they begin a value by at least so many characters. No program can guess
 * them, so it learns nothing when bytes wait for longer.
 */
const LEAST_BEGIN = 12

export class ValueForm {
  readonly #text: Buffer
  readonly #replacement: Buffer
  /** How many characters count as the value. */
  readonly #least: number
  /** The middle of the text, which each part of that length has. */
  readonly #middle: Buffer
  /** How many characters of the text begin it beyond doubt: no program knows the last ones. */
  readonly #begin: number

  /** `leastPart` in characters of this text. */
  constructor(text: string, replacement: string, leastPart: number) {
    const kept = commonStart(text, replacement)
    const start = text.length - kept >= LEAST_SECRET ? kept : 0
    this.#text = Buffer.from(text.slice(start), 'latin1')
    this.#replacement = Buffer.from(replacement.slice(start), 'latin1')
    const { length } = this.#text
    const isShort = start < kept || length < leastPart
    this.#begin = kept - start + LEAST_BEGIN
    this.#least = isShort ? length : Math.max(leastPart, Math.ceil((length * 2) / 3))
    this.#middle = this.#text.subarray(length - this.#least, this.#least)
  }

  get length(): number {
    return this.#text.length
  }

  /** How many of the last bytes begin the text. */
  begun(bytes: Buffer): number {
    const text = this.#text
    const head = text.subarray(0, this.#begin)
    const from = Math.max(0, bytes.length - text.length + 1)
    let at = text.length > this.#begin ? bytes.indexOf(head, from) : -1
    while (at !== -1 && !bytes.subarray(at).equals(text.subarray(0, bytes.length - at)))
      at = bytes.indexOf(head, at + 1)
    return at === -1 ? 0 : bytes.length - at
  }

  runs(bytes: Buffer): Run[] {
    const found: Run[] = []
    const text = this.#text
    const first = text.length - this.#least
    for (let at = bytes.indexOf(this.#middle); at !== -1; at = bytes.indexOf(this.#middle, at + 1)) {
      let start = first
      while (start > 0 && bytes[at - first + start - 1] === text[start - 1]) start--
      let end = this.#least
      while (end < text.length && bytes[at - first + end] === text[end]) end++
      if (end - start >= this.#least)
        found.push({ at: at - first + start, replacement: this.#replacement.subarray(start, end) })
    }
    return found
  }
}

interface Forms {
  readonly written: readonly ValueForm[]
  /** In lower case, for names of fields. */
  readonly lower: readonly ValueForm[]
}

const known = new WeakMap<Pair, Forms>()

/** Made once for each pair. */
export function formsOf(pair: Pair): Forms {
  const forms = known.get(pair) ?? makeForms(pair)
  known.set(pair, forms)
  return forms
}

function makeForms({ value, placeholder }: Pair): Forms {
  const texts = new Map<string, string>()
  const isShort = value.length - commonStart(value, placeholder) < 2 * LEAST_PART
  for (const encode of isShort ? [...ENCODINGS, ...CORES] : ENCODINGS)
    for (const write of WRITINGS) {
      const text = write(encode(value))
      const replacement = write(encode(placeholder))
      texts.set(text, replacement.length === text.length ? replacement : '*'.repeat(text.length))
    }
  const lower = [...texts].map(pair => pair.map(text => text.toLowerCase()) as [string, string])
  const make = ([text, replacement]: readonly [string, string]) =>
    new ValueForm(text, replacement, Math.ceil((LEAST_PART * text.length) / value.length))
  return { written: [...texts].map(make), lower: lower.map(make) }
}

/** base64 has three texts for a value, by the number of bytes before it. The last one before it is the colon of Basic. */
const base64After = (count: number) => (value: string) =>
  Buffer.from(`${':'.repeat(count)}${value}`, 'latin1')
    .toString('base64')
    .replaceAll('=', '')
    .slice(count)

const BASE64 = [0, 1, 2].map(base64After)

/** For a short value, of which parts do not count: the characters of base64 that depend on nothing beside it. */
const CORES = [0, 1, 2].map(
  count => (value: string) =>
    base64After(count)(value).slice(
      Math.ceil((8 * count) / 6) - count,
      Math.floor((8 * (count + value.length)) / 6) - count,
    ),
)

const ENCODINGS: readonly ((value: string) => string)[] = [
  value => value,
  ...BASE64,
  ...BASE64.map(encode => (value: string) => encode(value).replaceAll('+', '-').replaceAll('/', '_')),
]

/** How each of these stands in a URL, in JSON, where some servers escape more than they must, and in HTML. */
const WRITINGS: readonly ((text: string) => string)[] = [
  text => text,
  encodeURIComponent,
  text => encodeURIComponent(text).replaceAll(/%../g, code => code.toLowerCase()),
  text => JSON.stringify(text).slice(1, -1),
  // As PHP, Gson and .NET write it.
  text => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  text => text.replaceAll(/[=&<>']/g, character => `\\u00${hexOf(character)}`),
  text => text.replaceAll(/[+&<>'"`]/g, character => `\\u00${hexOf(character).toUpperCase()}`),
  // As Python, PHP, and Go with and without its templates.
  ...[
    { '"': '&quot;', "'": '&#x27;' },
    { '"': '&quot;', "'": '&#039;' },
    { '"': '&#34;', "'": '&#39;' },
    { '"': '&#34;', "'": '&#39;', '+': '&#43;' },
  ].map(entities => {
    const all: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', ...entities }
    return (text: string) => text.replaceAll(/[&<>"'+]/g, character => all[character] ?? character)
  }),
]

const hexOf = (character: string): string => character.charCodeAt(0).toString(16)

function commonStart(a: string, b: string): number {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}
