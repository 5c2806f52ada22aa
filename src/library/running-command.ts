/** A command whose output is read as it comes: by `for await`, or by streams and events like those of `node:child_process`. */
import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { isForwardable } from '../terminal/signals.ts'
import { CapturedOutput } from './captured-output.ts'
import { checkValue, usage } from './check-options.ts'
import type { Command } from './command.ts'
import { type ExecResult, toBytes } from './exec-options.ts'
import { type OutputPiece, PieceQueue } from './piece-queue.ts'

/** As those of a `ChildProcess`. A command that was ended by a signal has no exit code. */
export interface RunningCommandEvents {
  exit: [code: number | null, signal: NodeJS.Signals | null]
  /** After `exit`, when its streams have been read to their end. */
  close: [code: number | null, signal: NodeJS.Signals | null]
  /** The sandbox ended first, or the call was aborted. `result()` fails with the same. */
  error: [error: unknown]
}

type Stream = OutputPiece['stream']

/**
 * A reader that does not read holds the command up, as a pipe would, until `result()` is asked for. What `stdout` or `stderr` takes,
 * `for await` does not see.
 */
export class RunningCommand extends EventEmitter<RunningCommandEvents> implements AsyncIterable<OutputPiece> {
  /**
   * Always undefined. The process has a number in the sandbox alone, and the same number is another process on the host: a program that
   * hands it to `process.kill()` would end that one. Use `kill()` and `signal()`.
   */
  readonly pid = undefined
  readonly stdin: Writable
  readonly #command: Command
  readonly #queue: PieceQueue
  readonly #kept: Record<Stream, CapturedOutput>
  readonly #streams: Partial<Record<Stream, OutputStream>> = {}
  readonly #ended: Promise<ExecResult>
  #isOver: boolean = false

  /** @internal */
  static async begin(
    mostOutput: number,
    start: (output: (stream: Stream, bytes: Uint8Array) => Promise<void> | undefined) => Promise<Command>,
  ): Promise<RunningCommand> {
    const early: OutputPiece[] = []
    let running: RunningCommand | undefined
    const command = await start((stream, bytes) => {
      if (running !== undefined) return running.#put(stream, bytes)
      early.push({ stream, bytes: bytes.slice() })
      return undefined
    })
    running = new RunningCommand(command, mostOutput)
    for (const { stream, bytes } of early) void running.#put(stream, bytes)
    return running
  }

  private constructor(command: Command, mostOutput: number) {
    super()
    this.#command = command
    this.#queue = new PieceQueue(mostOutput)
    this.#kept = { stdout: new CapturedOutput(mostOutput), stderr: new CapturedOutput(mostOutput) }
    this.stdin = new Writable({
      write: (chunk: Uint8Array, _, done) => void command.write(chunk).then(() => done(), done),
      final: done => {
        command.endInput()
        done()
      },
    })
    // What a command that has ended does not read is no error of the program's.
    this.stdin.on('error', () => undefined)
    this.#ended = this.#finish()
    // Told by result(); until somebody asks, it is nobody's.
    this.#ended.catch(() => undefined)
  }

  get stdout(): Readable {
    return this.#stream('stdout').readable
  }

  get stderr(): Readable {
    return this.#stream('stderr').readable
  }

  /** Kept when there is room for more. */
  write(data: string | Uint8Array): Promise<void> {
    checkValue('write()', 'the data', data, 'bytes')
    return this.#command.write(toBytes(data))
  }

  endInput(): void {
    this.stdin.end()
  }

  /** To its process group. */
  signal(name: NodeJS.Signals): void {
    if (!isForwardable(name))
      throw usage(`"${String(name)}" is no signal that a command is sent`, 'SIGTERM, SIGINT or SIGHUP')
    this.#command.sendSignal(name)
  }

  /** With a signal, its process group gets that. Without one, it and all that it started end at once. False when it has ended. */
  kill(signal: NodeJS.Signals = 'SIGKILL'): boolean {
    if (signal !== 'SIGKILL') this.signal(signal)
    else this.#command.kill()
    return !this.#isOver
  }

  [Symbol.asyncIterator](): AsyncIterator<OutputPiece> {
    return this.#queue.read()
  }

  /** How it ended, with its output within `maxOutput`, whether that was read before, is read meanwhile, or never. */
  result(): Promise<ExecResult> {
    this.#queue.flow()
    return this.#ended
  }

  #put(stream: Stream, bytes: Uint8Array): Promise<void> | undefined {
    this.#kept[stream].push(bytes)
    const own = this.#streams[stream]
    return own === undefined ? this.#queue.put(stream, bytes) : own.put(bytes)
  }

  #stream(name: Stream): OutputStream {
    const made = this.#streams[name] ?? new OutputStream()
    if (this.#streams[name] !== undefined) return made
    this.#streams[name] = made
    for (const bytes of this.#queue.take(name)) void made.put(bytes)
    if (this.#isOver) made.end()
    return made
  }

  async #finish(): Promise<ExecResult> {
    try {
      const end = await this.#command.ended()
      const { stdout, stderr } = this.#kept
      const { failure } = this.#command
      return {
        ...end,
        stdout: stdout.text(),
        stderr: failure === undefined ? stderr.text() : `pen: ${failure}\n`,
        truncated: stdout.truncated || stderr.truncated,
      }
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
      queueMicrotask(() => void this.#tellEnd())
    }
  }

  async #tellEnd(): Promise<void> {
    const { code, signal } = this.#command.how
    this.emit('exit', code, signal)
    await Promise.all(Object.values(this.#streams).map(({ closed }) => closed))
    this.emit('close', code, signal)
  }
}

/** One stream of output, at the pace of whoever reads it. */
class OutputStream {
  readonly readable: Readable
  readonly closed: Promise<void>
  #goOn: () => void = () => undefined

  constructor() {
    this.readable = new Readable({ read: () => this.#goOn() })
    this.closed = new Promise(resolve => {
      this.readable.once('close', () => {
        this.#goOn()
        resolve()
      })
    })
  }

  put(bytes: Uint8Array): Promise<void> | undefined {
    // Whoever closed it wants no more, and the command goes on.
    if (this.readable.destroyed || this.readable.push(bytes.slice())) return undefined
    return new Promise(resolve => {
      this.#goOn = resolve
    })
  }

  end(): void {
    if (!this.readable.destroyed) this.readable.push(null)
  }
}
