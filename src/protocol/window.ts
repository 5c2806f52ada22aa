/**
 * Flow of one stream. The writer may send what the reader has granted, and no more: a reader that does not read stops its
 * writer alone, nobody buffers without bound, and no other stream waits.
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

  /** The other end tells; it can never give more than it took. */
  grant(bytes: number): void {
    if (bytes < 1 || this.#left + bytes > WINDOW) throw protocolError('room was given that nobody has')
    this.#left += bytes
  }
}

/** The reader's side: what came is owed until it was used. */
export class Allowance {
  #left = WINDOW
  #used = 0

  receive(bytes: number): void {
    if (bytes > this.#left) throw protocolError('more came than there was room for')
    this.#left -= bytes
  }

  /** How much to grant now: nothing until it is worth a message. */
  use(bytes: number): number {
    this.#used += bytes
    if (this.#used < WINDOW / 4) return 0
    const granted = this.#used
    this.#used = 0
    this.#left += granted
    return granted
  }
}
