/** Our stdout and stderr for a command without a terminal of its own. What it writes is hostile where one of ours is a terminal. */
import { fstatSync, writeSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import type { Stream } from '../protocol/exec-messages.ts'
import { TerminalFilter } from './filter.ts'
import { writerTo } from './nonblocking-writer.ts'
import { isTerminal } from './termios.ts'

export class Outputs {
  /** The reader of one of them has gone, or it takes no more. */
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

  /** Throws where something was lost that a reader waits for: a command whose file is cut off has not succeeded. */
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
    what: `what the command wrote cannot be written (${errnoOf(cause) ?? 'unknown error'})`,
    hint: 'look where its output goes, as at a disk that is full, and run it again',
    cause,
  })

interface End {
  readonly filter?: TerminalFilter
  readonly write: (bytes: Uint8Array) => undefined | Promise<void>
  /** What was not waited for. */
  readonly finish?: () => Promise<void>
}

/**
 * A pipe, a socket or a terminal may be full for as long as its reader likes: then we wait beside it, so that the other stream and
 * signals are not kept waiting too. What a file takes, it takes at once.
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

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(fd, bytes, done)
    } catch (error) {
      if (errnoOf(error) !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
    }
  }
}
