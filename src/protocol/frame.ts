/**
 * Frames between pen's own processes: `[u32 length][u8 kind][u32 channel][payload]`, big-endian. One end may be
 * compromised, so the decoder buffers at most one payload. The first invalid byte ends the stream.
 */
import { PenError } from '../base/error.ts'

export const MAX_PAYLOAD = 65_536
/** Texts such as a command line with its variables may be longer than a payload. They are sent in parts. */
export const MAX_TEXT = 2 * 2 ** 20
const HEADER = 9
/** The kind of a part of a longer message. The last frame has the kind of the whole message. */
const PART = 0

export interface Frame {
  readonly kind: number
  readonly channel: number
  readonly payload: Uint8Array
}

/** The other end broke the protocol. The stream is closed without an answer. */
export const protocolError = (what: string): PenError =>
  new PenError('WIRE', { what: `pen's processes do not understand each other: ${what}` })

const NOTHING = new Uint8Array()

/** One frame, or as many as the payload needs. */
export function encodeFrame(kind: number, channel: number, payload: Uint8Array = NOTHING): Uint8Array {
  if (payload.length > MAX_TEXT) throw protocolError(`a message of ${payload.length} bytes`)
  const parts = Math.max(1, Math.ceil(payload.length / MAX_PAYLOAD))
  const bytes = new Uint8Array(parts * HEADER + payload.length)
  const view = new DataView(bytes.buffer)
  for (let part = 0, at = 0; part < parts; part++) {
    const piece = payload.subarray(part * MAX_PAYLOAD, (part + 1) * MAX_PAYLOAD)
    view.setUint32(at, piece.length)
    view.setUint8(at + 4, part === parts - 1 ? kind : PART)
    view.setUint32(at + 5, channel)
    bytes.set(piece, at + HEADER)
    at += HEADER + piece.length
  }
  return bytes
}

/** Reads frames from a stream that may be split anywhere. `long` lists the kinds that may come in parts. */
export class FrameDecoder {
  readonly #long: ReadonlySet<number>
  /** The frame that is being read: its header, then with room for its payload. */
  #bytes = new Uint8Array(HEADER)
  #filled = 0
  #parts: Uint8Array[] = []
  #partsChannel = 0
  #state: 'whole' | 'reading' = 'whole'

  constructor(long: ReadonlySet<number> = new Set()) {
    this.#long = long
  }

  /**
   * Yields every frame that these bytes complete. After an error, or when the caller stops early, it yields no more
   * frames.
   */
  *push(bytes: Uint8Array): Generator<Frame, void, void> {
    if (this.#state !== 'whole') throw protocolError('more data came after an error')
    this.#state = 'reading'
    yield* this.#frames(bytes)
    this.#state = 'whole'
  }

  *#frames(bytes: Uint8Array): Generator<Frame, void, void> {
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + this.#bytes.length - this.#filled)
      this.#bytes.set(piece, this.#filled)
      this.#filled += piece.length
      at += piece.length
      if (this.#filled < this.#bytes.length) return
      const view = new DataView(this.#bytes.buffer)
      const length = view.getUint32(0)
      if (length > MAX_PAYLOAD) throw protocolError(`a frame of ${length} bytes`)
      if (this.#filled < HEADER + length) {
        const header = this.#bytes
        this.#bytes = new Uint8Array(HEADER + length)
        this.#bytes.set(header)
        continue
      }
      const payload = this.#bytes.subarray(HEADER)
      const frame = this.#join({ kind: view.getUint8(4), channel: view.getUint32(5), payload })
      this.#bytes = new Uint8Array(HEADER)
      this.#filled = 0
      if (frame !== undefined) yield frame
    }
  }

  /** Parts follow each other directly, and end with a frame of a kind in `long`. */
  #join(frame: Frame): Frame | undefined {
    if (this.#parts.length > 0 && frame.channel !== this.#partsChannel)
      throw protocolError('a message was interrupted')
    if (frame.kind === PART) {
      if (this.#long.size === 0 || frame.payload.length !== MAX_PAYLOAD) throw protocolError('an odd part')
      if ((this.#parts.length + 1) * MAX_PAYLOAD >= MAX_TEXT) throw protocolError('too many parts')
      this.#parts.push(frame.payload)
      this.#partsChannel = frame.channel
      return undefined
    }
    if (this.#parts.length === 0) return frame
    if (!this.#long.has(frame.kind)) throw protocolError('a message in parts of a kind that has none')
    const payload = Buffer.concat([...this.#parts, frame.payload])
    this.#parts = []
    return { ...frame, payload }
  }
}
