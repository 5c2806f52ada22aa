/**
 * Searches bytes that pass as another protocol for an HTTP request. The bytes are hostile. Lenient servers skip control
 * bytes, split at unusual white space, accept any method and version, and some accept a request line over several lines.
 * So the scan does not parse a request. It looks for the parts that lead a server to another host. These are a line that
 * ends with an HTTP version, an absolute target, and a Host field.
 */
export class RequestScan {
  /** The last bytes in lower case. A run of white space and control bytes becomes one newline or one space. */
  #tail: string = '\n'
  /** Words so far, as servers count them: split at any gap, at spaces before a letter, and at spaces alone. */
  #words = 0
  #spacedWords = 0
  #spaceSplit = 0
  /** A request needs a separator between method and target. STOMP and Redis have a `host:` line without one. */
  #hasSeparator: boolean = false
  #version: 'none' | 'written' | 'over' = 'none'
  #left = SCANNED_BYTES
  #last = SPACE

  /** Returns what was found. `bytes` continue those of the last call. */
  found(bytes: Uint8Array): string | undefined {
    const end = Math.min(bytes.length, this.#left)
    this.#left -= end
    for (let at = 0; at < end; at++) {
      const byte = bytes[at] ?? 0
      if (byte !== SPACE && this.#last === SPACE) this.#spaceSplit++
      const what = isGap(byte) ? this.#gap(byte) : this.#letter(byte)
      if (what !== undefined) return what
      this.#last = byte
    }
    return undefined
  }

  #gap(byte: number): string | undefined {
    this.#noteSeparator(byte)
    if (byte !== SPACE && byte !== TAB) {
      if (this.#version !== 'none') return 'a line that ends with a version of HTTP'
      this.#write('\n')
    } else {
      if (this.#version === 'written') this.#version = 'over'
      this.#write(' ')
    }
    return undefined
  }

  #letter(byte: number): string | undefined {
    if (this.#last === CR) this.#hasSeparator = true
    if (isGap(this.#last)) this.#words++
    if (this.#last === SPACE) this.#spacedWords++
    if (this.#version === 'over' || QUOTES.includes(byte)) this.#version = 'none'
    this.#write(String.fromCharCode(byte).toLowerCase())
    if (byte === COLON && this.#hasSeparator && HOST_FIELD.test(this.#tail)) return 'a Host field'
    if (byte !== SLASH) return undefined
    if (HTTP.test(this.#tail)) this.#version = 'written'
    const isTarget = [this.#words, this.#spacedWords, this.#spaceSplit].includes(2)
    return isTarget && ABSOLUTE.test(this.#tail) ? 'an absolute target' : undefined
  }

  /** For some servers a CR without LF separates words. */
  #noteSeparator(byte: number): void {
    if ((byte !== LF && byte !== CR) || (this.#last === CR && byte !== LF)) this.#hasSeparator = true
  }

  #write(character: string): void {
    const last = this.#tail.at(-1)
    if (character === ' ' && (last === ' ' || last === '\n')) return
    if (character === '\n' && (last === ' ' || last === '\n')) this.#tail = this.#tail.slice(0, -1)
    this.#tail = (this.#tail + character).slice(-TAIL)
  }
}

/** By default no server reads a longer head, except those without any limit. */
export const SCANNED_BYTES = 262_144
const TAIL = 32

const [TAB, LF, CR, SPACE, SLASH, COLON] = [0x09, 0x0a, 0x0d, 0x20, 0x2f, 0x3a]
/** Logs quote request lines. No HTTP version contains one of these characters. */
const QUOTES = Buffer.from('"\'`<>()[]{},;')

/** White space of C, Python and Java, and all other control bytes. */
const isGap = (byte: number): boolean => byte <= SPACE || (byte >= 0x7f && byte <= 0xa0)

const HOST_FIELD = /\nhost[\n ]?:$/
const HTTP = /[\n ]http[\n ]?\/$/
const ABSOLUTE = /[\n ][a-z][a-z0-9+.-]*:\/\/$/
