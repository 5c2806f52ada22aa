/** Writes the output of a command without a pty to stdout and stderr. Output is filtered where one of them is a terminal. */
import { fstatSync } from 'node:fs'
import { errnoOf, errnoText, PenError } from '../base/error.ts'
import { writeAll } from '../base/write-all.ts'
import type { Stream } from '../protocol/exec-messages.ts'
import { TerminalFilter } from './filter.ts'
import { writerTo } from './nonblocking-writer.ts'
import { isTerminal } from './termios.ts'

export class Outputs {
  /** Called once when a reader has closed its end or a write fails. */
  onClosed: () => void = () => undefined
  #isClosed: boolean = false
  #failure: unknown
  readonly #ends: Record<Stream, End> = { stdout: endOf(1), stderr: endOf(2) }

  get isClosed(): boolean {
    return this.#isClosed
  }

  put(stream: Stream, bytes: Uint8Array): undefined | Promise<void> {
    const end = this.#ends[stream]
    return this.#write(end, end.filter === undefined ? bytes : end.filter.push(bytes))
  }

  /** Throws when output was lost: a command whose output file is incomplete has not succeeded. */
  async flush(): Promise<void> {
    for (const end of Object.values(this.#ends)) {
      if (end.filter !== undefined) void this.#write(end, end.filter.end())
      await end.finish?.()
    }
    if (this.#failure !== undefined) throw notWritten(this.#failure)
  }

  #write(end: End, bytes: Uint8Array): undefined | Promise<void> {
    if (this.#isClosed || bytes.length === 0) return undefined
    try {
      return end.write(bytes)?.catch(error => this.#failed(error))
    } catch (error) {
      this.#failed(error)
      return undefined
    }
  }

  #failed(error: unknown): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (errnoOf(error) !== 'EPIPE') this.#failure = error
    this.onClosed()
  }
}

const notWritten = (cause: unknown): PenError =>
  new PenError('STATE', {
    what: `cannot write the output of the command (${errnoText(cause)})`,
    hint: 'check where its output goes, for example for a full disk, and run it again',
    cause,
  })

interface End {
  readonly filter?: TerminalFilter
  readonly write: (bytes: Uint8Array) => undefined | Promise<void>
  /** Waits for pending writes. */
  readonly finish?: () => Promise<void>
}

/**
 * A pipe, a socket or a terminal may stay full for any time. Writes to them are asynchronous, so that the other stream and signals
 * are still handled. A file takes every byte at once.
 */
function endOf(fd: number): End {
  if (isTerminal(fd)) {
    const writer = writerTo(fd)
    return {
      filter: new TerminalFilter(),
      write: bytes => writer.write(bytes),
      finish: () => writer.finish(),
    }
  }
  if (!mayBlock(fd))
    return {
      write: bytes => {
        writeAll(fd, bytes)
        return undefined
      },
    }
  const sink = Bun.file(fd).writer({ highWaterMark: 1 })
  return {
    write: bytes => {
      const work = [sink.write(bytes), sink.flush()]
      return work.some(part => part instanceof Promise) ? Promise.all(work).then(() => undefined) : undefined
    },
  }
}

function mayBlock(fd: number): boolean {
  try {
    const stat = fstatSync(fd)
    return stat.isFIFO() || stat.isSocket()
  } catch {
    return false
  }
}
