/** What a command has written and nobody has taken yet: for a reader of both streams, or for one of each. */

export interface OutputPiece {
  readonly stream: 'stdout' | 'stderr'
  readonly bytes: Uint8Array
}

interface Waiting {
  readonly piece: OutputPiece
  readonly taken: () => void
}

/** One piece of each stream at a time: the next comes when this one was taken. @internal */
export class PieceQueue {
  #pieces: Waiting[] = []
  /** Where the result was asked for and nobody reads, output flows, and this many bytes are kept for a reader who comes later. */
  #room: number
  #state: 'held' | 'flowing' | 'read' | 'dropped' = 'held'
  #isOver: boolean = false
  #wake: () => void = () => undefined

  constructor(mostKept: number) {
    this.#room = mostKept
  }

  /** The promise holds the command back, as a full pipe would. */
  put(stream: OutputPiece['stream'], bytes: Uint8Array): Promise<void> | undefined {
    if (this.#state === 'dropped' || this.#isOver) return undefined
    const piece = { stream, bytes: bytes.slice() }
    if (this.#state === 'flowing') {
      this.#keep({ piece, taken: () => undefined })
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
      // A reader that stops wants no more; the command goes on.
      this.#state = 'dropped'
      for (const { taken } of this.#pieces.splice(0)) taken()
    }
  }

  /** Where nobody reads, the command goes on all the same. */
  flow(): void {
    if (this.#state !== 'held') return
    this.#state = 'flowing'
    for (const waiting of this.#pieces.splice(0)) {
      waiting.taken()
      this.#keep(waiting)
    }
  }

  /** All that is here of one stream, for a reader of its own. */
  take(stream: OutputPiece['stream']): Uint8Array[] {
    const its = this.#pieces.filter(({ piece }) => piece.stream === stream)
    this.#pieces = this.#pieces.filter(({ piece }) => piece.stream !== stream)
    for (const { taken } of its) taken()
    return its.map(({ piece }) => piece.bytes)
  }

  end(): void {
    this.#isOver = true
    this.#wake()
  }

  #keep(waiting: Waiting): void {
    this.#room -= waiting.piece.bytes.length
    if (this.#room >= 0) this.#pieces.push(waiting)
  }
}
