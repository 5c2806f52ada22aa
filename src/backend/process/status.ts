/** What bubblewrap says on `--json-status-fd`: the pid of the sandbox's init, and how the command ended. */
import { readSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'

export class BwrapStatus {
  readonly #fd: number
  #text = ''
  #closed: boolean = false

  constructor(fd: number) {
    this.#fd = fd
  }

  /** Waits for the init to be there; undefined when bubblewrap failed before. */
  initPid(): number | undefined {
    while (!/"child-pid"/.test(this.#text) && this.#more());
    return this.#number('child-pid')
  }

  /** Read after the end. Undefined means that the command never ran. */
  exitCode(): number | undefined {
    while (this.#more());
    return this.#number('exit-code')
  }

  #more(): boolean {
    if (this.#closed) return false
    const chunk = Buffer.alloc(4096)
    try {
      const n = readSync(this.#fd, chunk, 0, chunk.length, null)
      if (n === 0) this.#closed = true
      this.#text += chunk.toString('latin1', 0, n)
    } catch (error) {
      if (errnoOf(error) !== 'EINTR') this.#closed = true
    }
    return !this.#closed
  }

  #number(key: string): number | undefined {
    const found = new RegExp(`"${key}"\\s*:\\s*(\\d+)`).exec(this.#text)?.[1]
    return found === undefined ? undefined : Number(found)
  }
}
