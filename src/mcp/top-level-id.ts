/**
 * Finds the `id` of a JSON-RPC message without parsing it: for a message that is too long or malformed. The client waits for an
 * answer with that id, and may write the id first or last.
 */

const MAX_ID = 256

export class TopLevelId {
  /** The last top-level `id`, as JSON.parse() would return it. */
  found: string | number | undefined
  #depth = 0
  #inString: boolean = false
  #escaped: boolean = false
  /** The last key at the top level, and the text after it. */
  #key = ''
  #text = ''

  push(bytes: Uint8Array): this {
    for (const byte of bytes) this.#step(String.fromCharCode(byte))
    return this
  }

  #step(char: string): void {
    if (this.#inString) {
      this.#append(char)
      if (this.#escaped) this.#escaped = false
      else if (char === '\\') this.#escaped = true
      else if (char === '"') this.#inString = false
    } else if (char === '{' || char === '[') this.#depth += 1
    else if (char === '}' || char === ']') {
      this.#endValue()
      this.#depth -= 1
    } else if (char === ',') this.#endValue()
    else if (char === ':' && this.#depth === 1) {
      this.#key = this.#text.trim()
      this.#text = ''
    } else {
      this.#append(char)
      this.#inString = char === '"'
    }
  }

  /** The text of an object or array stays empty: it is not an id. */
  #append(char: string): void {
    if (this.#depth === 1 && this.#text.length <= MAX_ID) this.#text += char
  }

  #endValue(): void {
    if (this.#depth !== 1) return
    if (this.#key === '"id"') this.found = idOf(this.#text)
    this.#key = ''
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
