/**
 * Reads what bubblewrap writes to `--json-status-fd`: the pid of the sandbox's init, and the exit code of the command.
 */
import { readSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'

export class BwrapStatus {
  readonly #fd: number
  readonly #onInit: (pid: number) => void
  #init: number | undefined
  #text = ''
  #closed: boolean = false

  /** Calls `onInit` once, as soon as the pid is known. */
  constructor(fd: number, onInit: (pid: number) => void = () => undefined) {
    this.#fd = fd
    this.#onInit = onInit
  }

  /** Waits for the init. Undefined when bubblewrap failed before it. */
  initPid(): number | undefined {
    if (this.#init !== undefined) return this.#init
    do this.#init = this.#number('child-pid')
    while (this.#init === undefined && this.#more())
    if (this.#init !== undefined) this.#onInit(this.#init)
    return this.#init
  }

  /** Call it after bubblewrap has ended. Undefined means that the command never ran. */
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
    // The delimiter shows that the number is complete.
    const found = new RegExp(`"${key}"\\s*:\\s*(\\d+)\\s*[,}]`).exec(this.#text)?.[1]
    return found === undefined ? undefined : Number(found)
  }
}
