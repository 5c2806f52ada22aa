/**
 * What a sandbox prints goes to the user's terminal, and a terminal obeys. Ordinary output passes untouched: text,
 * colours, cursor, titles, links, pictures. What would act on the user beyond the screen is taken out: writing or
 * reading the clipboard (OSC 52), and making the terminal type something back that the sandbox chose (title reports,
 * the answerback of ENQ).
 */
const ESC = 0x1b
const BEL = 0x07
const ENQ = 0x05

/** Longer than any honest title or link; a picture in an OSC is longer, and passes as it comes once it is known. */
const MAX_HELD = 64

export class TerminalFilter {
  #held: number[] = []
  #dropping: boolean = false

  /** Bytes in, bytes out. A sequence that is cut between two chunks is held until its kind is known. */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#held.length === 0 && !this.#dropping && chunk.indexOf(ESC) < 0 && chunk.indexOf(ENQ) < 0)
      return chunk
    const out: number[] = []
    for (const byte of chunk) this.#take(byte, out)
    return Uint8Array.from(out)
  }

  /** What is still held when the output ends; an unfinished sequence is harmless only if it is not sent. */
  end(): void {
    this.#held = []
    this.#dropping = false
  }

  #take(byte: number, out: number[]): void {
    if (this.#dropping) {
      const previous = this.#held.at(-1)
      this.#held = [byte]
      if (byte === BEL || (previous === ESC && byte === 0x5c)) {
        this.#dropping = false
        this.#held = []
      }
      return
    }
    if (this.#held.length === 0) {
      if (byte === ESC) this.#held.push(byte)
      else if (byte !== ENQ) out.push(byte)
      return
    }
    // A new escape ends whatever was begun.
    if (byte === ESC) {
      out.push(...this.#held)
      this.#held = [byte]
      return
    }
    this.#held.push(byte)
    const begun = String.fromCharCode(...this.#held)
    if (begun.startsWith('\x1b]52;') || begun === '\x1b]52\x07') {
      this.#dropping = byte !== BEL
      this.#held = []
    } else if (isTitleReport(begun)) this.#held = []
    else if (!mayBecomeHarmful(begun) || this.#held.length > MAX_HELD) {
      out.push(...this.#held)
      this.#held = []
    }
  }
}

/** `CSI 20 t` and `CSI 21 t`: the terminal types the icon label or title, which the sandbox may have set. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
const isTitleReport = (text: string): boolean => /^\x1b\[0*2[01](?:;[0-9;]*)?t$/.test(text)

// biome-ignore lint/suspicious/noControlCharactersInRegex: the same
const PARAMETERS = /^\x1b\[[0-9;]*$/

const mayBecomeHarmful = (text: string): boolean =>
  text === '\x1b' || text === '\x1b]' || text === '\x1b]5' || text === '\x1b]52' || PARAMETERS.test(text)
