/**
 * Writes to a terminal that may stop reading for any time, as over a hung connection. A blocking write would stop the supervisor:
 * no wall clock, limit or denial would be enforced meanwhile.
 */
import { constants, openSync, writeSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { isTerminal } from './termios.ts'

/** A terminal that is read drains within a millisecond. */
const RETRY_MS = 1
const MAX_RETRY_MS = 32
/** At the end, pen waits this long for a terminal that accepts nothing. */
const STALL_MS = 5000

export class NonblockingWriter {
  readonly #fd: number
  #written = 0
  #busy: Promise<void> | undefined
  #isOpen: boolean = true

  /** `fd` is non-blocking. */
  constructor(fd: number) {
    this.#fd = fd
  }

  /** Undefined when all bytes are written. Otherwise they stay in memory until the promise resolves. */
  write(bytes: Uint8Array): undefined | Promise<void> {
    const done = this.#busy === undefined ? this.#push(bytes) : 0
    if (done === bytes.length) return undefined
    const rest = bytes.slice(done)
    const work: Promise<void> = (this.#busy ?? Promise.resolve())
      .then(() => this.#pushAll(rest))
      .then(() => {
        if (this.#busy === work) this.#busy = undefined
      })
    this.#busy = work
    return work
  }

  /** Waits for `work` while the terminal still accepts bytes, and then gives up. */
  async finish(work: Promise<unknown> | undefined = this.#busy): Promise<void> {
    let isDone = work === undefined
    const done = work?.finally(() => {
      isDone = true
    })
    for (let before = -1; !isDone && before !== this.#written; ) {
      before = this.#written
      await Promise.race([done, Bun.sleep(STALL_MS)])
    }
    if (!isDone) this.#isOpen = false
  }

  close(): void {
    this.#isOpen = false
  }

  async #pushAll(bytes: Uint8Array): Promise<void> {
    let wait = RETRY_MS
    for (let done = 0; done < bytes.length; ) {
      await Bun.sleep(wait)
      const more = this.#push(bytes.subarray(done))
      wait = more > 0 ? RETRY_MS : Math.min(MAX_RETRY_MS, wait * 2)
      done += more
    }
  }

  /** Returns how many bytes are done. All are done when the terminal has gone. */
  #push(bytes: Uint8Array): number {
    let done = 0
    try {
      while (this.#isOpen && done < bytes.length) {
        const more = writeSync(this.#fd, bytes, done)
        done += more
        this.#written += more
      }
      return bytes.length
    } catch (error) {
      if (errnoOf(error) === 'EAGAIN') return done
      this.#isOpen = false
      return bytes.length
    }
  }
}

/**
 * Opens the terminal again: O_NONBLOCK on the inherited descriptor would also apply to the shell. A terminal of another user, as after
 * `su`, cannot be opened. pen then uses the inherited descriptor, and its writes block.
 */
export function writerTo(fd: number): NonblockingWriter {
  // Opening a file again would write from its beginning.
  if (!isTerminal(fd)) return new NonblockingWriter(fd)
  const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY
  try {
    return new NonblockingWriter(openSync(`/proc/self/fd/${fd}`, flags))
  } catch {
    return new NonblockingWriter(fd)
  }
}
