/**
 * Writes to a terminal that may take nothing for as long as it likes: a connection that hangs, a window that is stopped. Whoever waited
 * for it in a write would do nothing else meanwhile: no wall clock, no limit and no denial would hold.
 */
import { constants, openSync, writeSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { isTerminal } from './termios.ts'

const O_CLOEXEC = 0o2000000
/** What fits into a terminal is taken out of it within a millisecond, where somebody reads. */
const RETRY_MS = 1
const MAX_RETRY_MS = 32
/** At the end, for one that takes nothing any more. */
const PATIENCE_MS = 5000

export class NonblockingWriter {
  readonly #fd: number
  #taken = 0
  #busy: Promise<void> | undefined
  #life: 'open' | 'gone' = 'open'

  /** A descriptor that waits for nobody. */
  constructor(fd: number) {
    this.#fd = fd
  }

  /** Undefined when it has been taken; else kept when it is. Whoever does not wait for that piles it up here. */
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

  /** Until this is done, as long as the terminal takes any of it; what it has not taken by then it never will. */
  async finish(work: Promise<unknown> | undefined = this.#busy): Promise<void> {
    let isDone = work === undefined
    const done = work?.finally(() => {
      isDone = true
    })
    for (let before = -1; !isDone && before !== this.#taken; ) {
      before = this.#taken
      await Promise.race([done, Bun.sleep(PATIENCE_MS)])
    }
    if (!isDone) this.#life = 'gone'
  }

  /** Nothing is written any more. */
  close(): void {
    this.#life = 'gone'
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

  /** How much it takes now: all, where nobody is there any more. */
  #push(bytes: Uint8Array): number {
    let done = 0
    try {
      while (this.#life === 'open' && done < bytes.length) {
        const more = writeSync(this.#fd, bytes, done)
        done += more
        this.#taken += more
      }
      return bytes.length
    } catch (error) {
      if (errnoOf(error) === 'EAGAIN') return done
      this.#life = 'gone'
      return bytes.length
    }
  }
}

/**
 * The terminal opened anew: what is set on the descriptor that we were given would be set for the shell, too. One that is not the
 * user's own, as after `su`, cannot be opened; there pen waits as other programs do.
 */
export function writerTo(fd: number): NonblockingWriter {
  // A file that is opened anew is written from its beginning.
  if (!isTerminal(fd)) return new NonblockingWriter(fd)
  const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY | O_CLOEXEC
  try {
    return new NonblockingWriter(openSync(`/proc/self/fd/${fd}`, flags))
  } catch {
    return new NonblockingWriter(fd)
  }
}
