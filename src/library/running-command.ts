/** A command whose output is read while it runs: with `for await`, or with the streams and events of a `ChildProcess`. */
import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { isForwardable } from '../terminal/signals.ts'
import { type CapturedStreams, captureStreams, resultOf } from './captured-output.ts'
import { checkValue, usage } from './check-options.ts'
import type { Command } from './command.ts'
import { type ExecResult, toBytes } from './exec-options.ts'
import { type OutputPiece, PieceQueue } from './piece-queue.ts'

/** The events of a `ChildProcess`. A command that was killed by a signal has no exit code. */
export interface RunningCommandEvents {
  exit: [code: number | null, signal: NodeJS.Signals | null]
  /** After `exit`, when the streams have been read to their end. */
  close: [code: number | null, signal: NodeJS.Signals | null]
  /** The sandbox ended first, or the call was aborted. `result()` rejects with the same error. */
  error: [error: unknown]
}

type Stream = OutputPiece['stream']

/**
 * Unread output pauses the command, like a full pipe, until `result()` is called. `for await` does not see a stream that is read
 * through `stdout` or `stderr`.
 */
export class RunningCommand extends EventEmitter<RunningCommandEvents> implements AsyncIterable<OutputPiece> {
  /**
   * Always undefined. The pid inside the sandbox belongs to another process on the host, which `process.kill()` would kill. Use
   * `kill()` and `signal()`.
   */
  readonly pid = undefined
  readonly stdin: Writable
  readonly #command: Command
  readonly #queue: PieceQueue
  readonly #captured: CapturedStreams
  readonly #streams: Partial<Record<Stream, OutputStream>> = {}
  readonly #ended: Promise<ExecResult>
  #isOver: boolean = false

  /** @internal */
  static async begin(
    maxOutput: number,
    start: (output: (stream: Stream, bytes: Uint8Array) => Promise<void> | undefined) => Promise<Command>,
  ): Promise<RunningCommand> {
    // The first output comes after the supervisor has read the order, so `running` is set by then.
    let running: RunningCommand
    const command = await start((stream, bytes) => running.#put(stream, bytes))
    running = new RunningCommand(command, maxOutput)
    return running
  }

  private constructor(command: Command, maxOutput: number) {
    super()
    this.#command = command
    this.#queue = new PieceQueue(maxOutput)
    this.#captured = captureStreams(maxOutput)
    this.stdin = new Writable({
      write: (chunk: Uint8Array, _, done) => void command.execution.write(chunk).then(() => done(), done),
      final: done => {
        command.execution.endInput()
        done()
      },
    })
    // Writing to a command that has ended is not an error of the program.
    this.stdin.on('error', () => undefined)
    this.#ended = this.#finish()
    // result() reports it. Without a call of result() it must not be an unhandled rejection.
    this.#ended.catch(() => undefined)
  }

  get stdout(): Readable {
    return this.#stream('stdout').readable
  }

  get stderr(): Readable {
    return this.#stream('stderr').readable
  }

  /** Resolves when there is room for more input. */
  write(data: string | Uint8Array): Promise<void> {
    checkValue('write()', 'the data', data, 'bytes')
    return this.#command.execution.write(toBytes(data))
  }

  endInput(): void {
    this.stdin.end()
  }

  /** Sends a signal to the command's process group. */
  signal(name: NodeJS.Signals): void {
    if (!isForwardable(name))
      throw usage(`"${String(name)}" is not a signal that pen forwards`, 'use SIGTERM, SIGINT or SIGHUP')
    this.#command.execution.signal(name)
  }

  /** Sends the signal to the process group. Without one, kills every process that the command started. False after the end. */
  kill(signal: NodeJS.Signals = 'SIGKILL'): boolean {
    if (signal !== 'SIGKILL') this.signal(signal)
    else this.#command.execution.kill()
    return !this.#isOver
  }

  [Symbol.asyncIterator](): AsyncIterator<OutputPiece> {
    return this.#queue.read()
  }

  /** How the command ended, with its output within `maxOutput`, whether or not the output was read. */
  result(): Promise<ExecResult> {
    this.#queue.flow()
    return this.#ended
  }

  #put(stream: Stream, bytes: Uint8Array): Promise<void> | undefined {
    this.#captured[stream].push(bytes)
    const own = this.#streams[stream]
    return own === undefined ? this.#queue.put(stream, bytes) : own.put(bytes)
  }

  #stream(name: Stream): OutputStream {
    const stream = this.#streams[name] ?? new OutputStream()
    if (this.#streams[name] !== undefined) return stream
    this.#streams[name] = stream
    for (const bytes of this.#queue.take(name)) void stream.put(bytes)
    if (this.#isOver) stream.end()
    return stream
  }

  async #finish(): Promise<ExecResult> {
    try {
      const end = await this.#command.ended()
      return resultOf(end, this.#captured, this.#command.failure)
    } catch (error) {
      queueMicrotask(() => {
        if (this.listenerCount('error') > 0) this.emit('error', error)
      })
      throw error
    } finally {
      this.#isOver = true
      this.#queue.end()
      this.stdin.destroy()
      for (const stream of Object.values(this.#streams)) stream.end()
      queueMicrotask(() => void this.#emitEnd())
    }
  }

  async #emitEnd(): Promise<void> {
    const { code, signal } = this.#command.exitStatus
    this.emit('exit', code, signal)
    await Promise.all(Object.values(this.#streams).map(({ closed }) => closed))
    this.emit('close', code, signal)
  }
}

/** One output stream, read at the pace of its reader. */
class OutputStream {
  readonly readable: Readable
  readonly closed: Promise<void>
  #resume: () => void = () => undefined

  constructor() {
    this.readable = new Readable({ read: () => this.#resume() })
    this.closed = new Promise(resolve => {
      this.readable.once('close', () => {
        this.#resume()
        resolve()
      })
    })
  }

  put(bytes: Uint8Array): Promise<void> | undefined {
    // The reader closed the stream. Drop the rest, so that the command continues.
    if (this.readable.destroyed || this.readable.push(bytes.slice())) return undefined
    return new Promise(resolve => {
      this.#resume = resolve
    })
  }

  end(): void {
    if (!this.readable.destroyed) this.readable.push(null)
  }
}
