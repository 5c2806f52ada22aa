/**
 * Searches bytes that pass as another protocol for an HTTP request. The bytes are hostile. Lenient servers skip control
 * bytes, split at unusual white space, accept any method and version, and some accept a request line over several lines.
 * So the scan does not parse a request. It looks for the parts that lead a server to another host. These are a line that
 * ends with an HTTP version, an absolute target, and a Host field.
 * It has no limit: a server may read a long head, or a body and then a second request. So it must be fast: it keeps
 * numbers, and no text.
 */
export class RequestScan {
  /** The word that is being read: its length, a hash in lower case, and the gap before it. */
  #length = 0
  #hash = 0
  #gapBefore = HARD
  /** The same of the word before the last gap. */
  #hashBefore = 0
  #gapBeforeThat = HARD
  #scheme = NO_SCHEME
  #words = 0
  #wordsInLine = 0
  /** Words as uWSGI and Java count them, which split at spaces alone: those before this one, in all and in this line. */
  #spaces = 0
  #spacesInLine = 0
  /** A request needs a separator between method and target. STOMP and Redis have a `host:` line without one. */
  #hasSeparator: boolean = false
  /** A body may come, and the next request line begins anywhere in a line. */
  #hasBody: boolean = false
  #isTarget: boolean = false
  #version: 'none' | 'written' | 'over' = 'none'
  #last = LF

  /** Returns what was found. `bytes` continue those of the last call. */
  found(bytes: Uint8Array): string | undefined {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      if (this.#last === SPACE && byte !== SPACE) {
        this.#spaces++
        this.#spacesInLine++
      }
      const what = isGap(byte) ? this.#gap(byte) : this.#letter(byte)
      if (what !== undefined) return what
      this.#last = byte
    }
    return undefined
  }

  #gap(byte: number): string | undefined {
    this.#noteSeparator(byte)
    const isHard = byte !== SPACE && byte !== TAB
    if (isHard && this.#version !== 'none') return 'a line that ends with a version of HTTP'
    if (this.#version === 'written') this.#version = 'over'
    if (this.#isTarget && byte === SPACE) return 'an absolute target'
    this.#isTarget = false
    if (!isGap(this.#last)) {
      this.#hashBefore = this.#hash
      this.#gapBeforeThat = this.#gapBefore
      this.#gapBefore = SOFT
    }
    if (isHard) this.#gapBefore = HARD
    if (byte === LF) {
      this.#wordsInLine = 0
      if (this.#last === CR) this.#spacesInLine = 0
    }
    return undefined
  }

  #letter(byte: number): string | undefined {
    if (isGap(this.#last)) this.#beginWord()
    if (this.#version === 'over' || isQuote(byte)) this.#version = 'none'
    const found = byte === COLON ? this.#colon() : byte === SLASH ? this.#slash() : undefined
    const letter = lower(byte)
    this.#scheme = nextInScheme(this.#scheme, letter)
    this.#hash = (Math.imul(this.#hash, 31) + letter) | 0
    this.#length++
    return found
  }

  #beginWord(): void {
    this.#length = 0
    this.#hash = 0
    this.#scheme = SCHEME_START
    this.#words++
    this.#wordsInLine++
    if (this.#last === CR) this.#hasSeparator = true
  }

  #colon(): string | undefined {
    if (!this.#hasSeparator) return undefined
    if (this.#follows(HOST, HARD)) return 'a Host field'
    if (this.#follows(CONTENT_LENGTH, HARD) || this.#follows(TRANSFER_ENCODING, HARD)) this.#hasBody = true
    return undefined
  }

  #slash(): string | undefined {
    if (this.#follows(HTTP, SOFT)) this.#version = 'written'
    if (this.#scheme !== SCHEME_SLASH) return undefined
    if (this.#words === 2 || this.#spaces === 1) return 'an absolute target'
    this.#isTarget = this.#wordsInLine === 2 || this.#spacesInLine === 1 || this.#hasBody
    return undefined
  }

  /** Whether the bytes up to here are this word, with or without a gap after it. */
  #follows(word: number, gap: number): boolean {
    return this.#length === 0
      ? this.#hashBefore === word && this.#gapBeforeThat >= gap
      : this.#hash === word && this.#gapBefore >= gap
  }

  /** For some servers a CR without LF separates words. */
  #noteSeparator(byte: number): void {
    if ((byte !== LF && byte !== CR) || (this.#last === CR && byte !== LF)) this.#hasSeparator = true
  }
}

const [TAB, LF, CR, SPACE, SLASH, COLON] = [0x09, 0x0a, 0x0d, 0x20, 0x2f, 0x3a]

/** A gap of spaces and tabs, and one with other white space or control bytes. */
const [SOFT, HARD] = [1, 2]

/** White space of C, Python and Java, and all other control bytes. */
const isGap = (byte: number): boolean => byte <= SPACE || (byte >= 0x7f && byte <= 0xa0)

const lower = (byte: number): number => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte)

/** Logs quote request lines. No HTTP version contains one of these characters. */
const QUOTES = new Uint8Array(256)
for (const byte of Buffer.from('"\'`<>()[]{},;')) QUOTES[byte] = 1
const isQuote = (byte: number): boolean => QUOTES[byte] === 1

const hashOf = (word: string): number =>
  Buffer.from(word).reduce((hash, byte) => (Math.imul(hash, 31) + byte) | 0, 0)
const [HOST, HTTP, CONTENT_LENGTH, TRANSFER_ENCODING] = [
  'host',
  'http',
  'content-length',
  'transfer-encoding',
].map(hashOf) as [number, number, number, number]

/** How much of `scheme://` a word has. */
const [NO_SCHEME, SCHEME_START, SCHEME_NAME, SCHEME_COLON, SCHEME_SLASH] = [0, 1, 2, 3, 4]

const IN_SCHEME = new Uint8Array(256)
for (const byte of Buffer.from('abcdefghijklmnopqrstuvwxyz0123456789+.-')) IN_SCHEME[byte] = 1

function nextInScheme(scheme: number, letter: number): number {
  if (scheme === NO_SCHEME) return NO_SCHEME
  if (scheme === SCHEME_START) return letter >= 0x61 && letter <= 0x7a ? SCHEME_NAME : NO_SCHEME
  if (scheme === SCHEME_NAME && IN_SCHEME[letter] === 1) return SCHEME_NAME
  if (scheme === SCHEME_NAME) return letter === COLON ? SCHEME_COLON : NO_SCHEME
  return scheme === SCHEME_COLON && letter === SLASH ? SCHEME_SLASH : NO_SCHEME
}
