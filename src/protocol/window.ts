/**
 * Flow control of one stream. The writer sends only what the reader has granted. A slow reader stops only its own
 * writer, memory is bounded, and no other stream waits.
 */
import { protocolError } from './frame.ts'

export const WINDOW = 256 * 1024

/** The writer's side. */
export class Credit {
  #left = WINDOW

  get left(): number {
    return this.#left
  }

  spend(bytes: number): void {
    if (bytes > this.#left) throw protocolError('more was sent than there was room for')
    this.#left -= bytes
  }

  /** The other end can never grant more than it received. */
  grant(bytes: number): void {
    if (bytes < 1 || this.#left + bytes > WINDOW) throw protocolError('more room was granted than was used')
    this.#left += bytes
  }
}

/** The reader's side. Received bytes are granted again after they were used. */
export class Allowance {
  #left = WINDOW
  #used = 0

  receive(bytes: number): void {
    if (bytes > this.#left) throw protocolError('more came than there was room for')
    this.#left -= bytes
  }

  /** Returns how much to grant now. Zero until a message is worthwhile. */
  use(bytes: number): number {
    this.#used += bytes
    if (this.#used < WINDOW / 4) return 0
    const granted = this.#used
    this.#used = 0
    this.#left += granted
    return granted
  }
}
