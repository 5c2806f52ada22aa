/** Output of a command that no reader has taken yet: for a reader of both streams, or of one. */

export interface OutputPiece {
  readonly stream: 'stdout' | 'stderr'
  readonly bytes: Uint8Array
}

interface QueuedPiece {
  readonly piece: OutputPiece
  readonly taken: () => void
}

/** Holds one piece of each stream. The next arrives when this one is taken. @internal */
export class PieceQueue {
  #pieces: QueuedPiece[] = []
  /** After `flow()` without a reader, this many bytes are buffered for a later reader. */
  #room: number
  #state: 'held' | 'flowing' | 'read' | 'dropped' = 'held'
  #isOver: boolean = false
  #wake: () => void = () => undefined

  constructor(maxBuffered: number) {
    this.#room = maxBuffered
  }

  /** The promise pauses the command, like a full pipe. */
  put(stream: OutputPiece['stream'], bytes: Uint8Array): Promise<void> | undefined {
    if (this.#state === 'dropped' || this.#isOver) return undefined
    const piece = { stream, bytes: bytes.slice() }
    if (this.#state === 'flowing') {
      this.#buffer({ piece, taken: () => undefined })
      return undefined
    }
    return new Promise(taken => {
      this.#pieces.push({ piece, taken })
      this.#wake()
    })
  }

  async *read(): AsyncGenerator<OutputPiece, void, void> {
    if (this.#state !== 'dropped') this.#state = 'read'
    try {
      for (;;) {
        const next = this.#pieces.shift()
        if (next !== undefined) {
          next.taken()
          yield next.piece
        } else if (this.#isOver || this.#state === 'dropped') return
        else
          await new Promise<void>(resolve => {
            this.#wake = resolve
          })
      }
    } finally {
      // The reader has stopped. Drop the rest, so that the command continues.
      this.#state = 'dropped'
      for (const { taken } of this.#pieces.splice(0)) taken()
    }
  }

  /** Lets the command continue without a reader. */
  flow(): void {
    if (this.#state !== 'held') return
    this.#state = 'flowing'
    for (const queued of this.#pieces.splice(0)) {
      queued.taken()
      this.#buffer(queued)
    }
  }

  /** Removes and returns the pieces of one stream. */
  take(stream: OutputPiece['stream']): Uint8Array[] {
    const own = this.#pieces.filter(({ piece }) => piece.stream === stream)
    this.#pieces = this.#pieces.filter(({ piece }) => piece.stream !== stream)
    for (const { taken } of own) taken()
    return own.map(({ piece }) => piece.bytes)
  }

  end(): void {
    this.#isOver = true
    this.#wake()
  }

  #buffer(queued: QueuedPiece): void {
    this.#room -= queued.piece.bytes.length
    if (this.#room >= 0) this.#pieces.push(queued)
  }
}
