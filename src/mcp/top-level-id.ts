/**
 * Finds the `id` of a JSON-RPC message without parsing it: for a message that is too long or malformed. The client waits for an
 * answer with that id, and may write the id first or last.
 */

const MAX_ID = 256

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const OPEN = [0x7b, 0x5b]
const CLOSE = [0x7d, 0x5d]

export class TopLevelId {
  /** The last top-level `id`, as JSON.parse() would return it. */
  found: string | number | undefined
  #depth = 0
  #inString: boolean = false
  #escaped: boolean = false
  #isValue: boolean = false
  #key = ''
  #text = ''

  push(bytes: Uint8Array): this {
    for (const byte of bytes) this.#step(byte)
    return this
  }

  #step(byte: number): void {
    if (this.#inString) this.#stepInString(byte)
    else if (byte === QUOTE) {
      this.#inString = true
      if (this.#depth === 1) this.#text = '"'
    } else if (OPEN.includes(byte)) {
      this.#depth += 1
      // An object or an array is not an id.
      this.#text = ''
      this.#isValue = this.#depth > 1
      if (this.#depth === 2) this.#key = ''
    } else if (CLOSE.includes(byte)) {
      this.#endValue()
      this.#depth -= 1
    } else if (this.#depth !== 1) return
    else if (byte === COLON) {
      this.#key = this.#text
      this.#text = ''
      this.#isValue = true
    } else if (byte === COMMA) {
      this.#endValue()
      this.#isValue = false
    } else if (this.#isValue && byte > 0x20) this.#append(byte)
  }

  #stepInString(byte: number): void {
    if (this.#depth === 1) this.#append(byte)
    if (this.#escaped) this.#escaped = false
    else if (byte === BACKSLASH) this.#escaped = true
    else if (byte === QUOTE) this.#inString = false
  }

  #append(byte: number): void {
    if (this.#text.length <= MAX_ID) this.#text += String.fromCharCode(byte)
  }

  #endValue(): void {
    if (this.#depth === 1 && this.#isValue && this.#key === '"id"') this.found = idOf(this.#text)
    this.#text = ''
  }
}

function idOf(text: string): string | number | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'latin1').toString('utf8'))
    return typeof value === 'string' || typeof value === 'number' ? value : undefined
  } catch {
    return undefined
  }
}
