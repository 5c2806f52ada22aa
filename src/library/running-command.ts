/** A command whose output is read as it comes. */
import { isPassed } from '../sandbox/signal-number.ts'
import type { Command } from './command.ts'
import { type CommandEnd, usage } from './exec-options.ts'

export interface OutputPiece {
  readonly stream: 'stdout' | 'stderr'
  readonly bytes: Uint8Array
}

/**
 * Read it with `for await (const { stream, bytes } of command)`, then ask `result()`. A reader that does not read holds the command
 * up, as a pipe would; where nobody ever reads, `result()` lets the output go.
 */
export class RunningCommand implements AsyncIterable<OutputPiece> {
  readonly #command: Command
  readonly #output: PieceQueue
  readonly #ended: Promise<CommandEnd>

  /** @internal */
  constructor(command: Command, output: PieceQueue) {
    this.#command = command
    this.#output = output
    this.#ended = command.ended().finally(() => output.end())
    // Told by result(); until somebody asks, it is nobody's.
    this.#ended.catch(() => undefined)
  }

  /** Kept when there is room for more. */
  write(data: string | Uint8Array): Promise<void> {
    return this.#command.write(typeof data === 'string' ? new TextEncoder().encode(data) : data)
  }

  endInput(): void {
    this.#command.endInput()
  }

  /** To its process group. */
  signal(name: NodeJS.Signals): void {
    if (!isPassed(name))
      throw usage(`"${name}" is no signal that a command is sent`, 'SIGTERM, SIGINT or SIGHUP')
    this.#command.sendSignal(name)
  }

  /** It and all that it started, at once. */
  kill(): void {
    this.#command.kill()
  }

  [Symbol.asyncIterator](): AsyncIterator<OutputPiece> {
    return this.#output.read()
  }

  result(): Promise<CommandEnd> {
    this.#output.letGo()
    return this.#ended
  }
}

/** One piece at a time: the next is taken when this one was. @internal */
export class PieceQueue {
  readonly #pieces: { readonly piece: OutputPiece; readonly taken: () => void }[] = []
  #state: 'waiting' | 'read' | 'dropped' | 'over' = 'waiting'
  #wake: () => void = () => undefined

  put(stream: OutputPiece['stream'], bytes: Uint8Array): Promise<void> | undefined {
    if (this.#state === 'dropped' || this.#state === 'over') return undefined
    return new Promise(taken => {
      this.#pieces.push({ piece: { stream, bytes: bytes.slice() }, taken })
      this.#wake()
    })
  }

  async *read(): AsyncGenerator<OutputPiece, void, void> {
    if (this.#state === 'waiting') this.#state = 'read'
    try {
      for (;;) {
        const next = this.#pieces.shift()
        if (next !== undefined) {
          next.taken()
          yield next.piece
        } else if (this.#state === 'over' || this.#state === 'dropped') return
        else
          await new Promise<void>(resolve => {
            this.#wake = resolve
          })
      }
    } finally {
      // A reader that stops wants no more; the command goes on.
      if (this.#state === 'read') this.#drop()
    }
  }

  /** Where nobody reads. */
  letGo(): void {
    if (this.#state === 'waiting') this.#drop()
  }

  end(): void {
    if (this.#state !== 'dropped') this.#state = 'over'
    this.#wake()
  }

  #drop(): void {
    this.#state = 'dropped'
    for (const { taken } of this.#pieces.splice(0)) taken()
    this.#wake()
  }
}
