/** Reads a message body piece by piece, in any framing. Chunked coding is read as strictly as heads. */
import type { ByteStream } from '../stream/byte-stream.ts'
import { type Field, type Framing, readFields } from './field.ts'

const MAX_SIZE_LINE = 256
const MAX_TRAILERS = 16_384
/** Chunk extensions are capped by MAX_SIZE_LINE. RFC 9112 has no limit, and only attacks use long ones. */
const SIZE_LINE = /^([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/

export type BodyState = 'reading' | 'complete' | 'broken' | 'malformed'

export class BodyReader {
  state: BodyState
  why = ''
  /** Fields after the last chunk. They are hostile like those of a head, and were not judged with it. */
  readonly trailers: Field[] = []
  readonly #from: ByteStream
  readonly #framing: Framing['kind']
  /** Remaining bytes of the body or of the current chunk. */
  #left: number
  /** The data of a chunk is read, and its CRLF comes next. */
  #atChunkEnd: boolean = false
  /** Bytes of trailers read so far. Undefined before the last chunk. */
  #trailerBytes: number | undefined

  constructor(from: ByteStream, framing: Framing) {
    this.#from = from
    this.#framing = framing.kind
    this.#left = framing.kind === 'length' ? framing.length : 0
    this.state =
      framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0) ? 'complete' : 'reading'
  }

  /** The next piece. Undefined at the end or on an error; see `state`. */
  async next(): Promise<Buffer | undefined> {
    while (this.state === 'reading') {
      const piece = this.step()
      if (piece !== undefined) return piece
      if (this.state === 'reading' && !(await this.#from.more())) this.#stop()
    }
    return undefined
  }

  /** The bytes that have arrived, without waiting. */
  step(): Buffer | undefined {
    if (this.state !== 'reading') return undefined
    if (this.#framing === 'chunked' && this.#left === 0 && !this.#readSize()) return undefined
    const { held } = this.#from
    if (held.length === 0) return undefined
    if (this.#framing === 'until-close') return this.#from.consume(held.length)
    const piece = this.#from.consume(Math.min(held.length, this.#left))
    this.#left -= piece.length
    if (this.#left === 0) {
      if (this.#framing === 'length') this.state = 'complete'
      else this.#atChunkEnd = true
    }
    return piece
  }

  #stop(): void {
    const isEnd = this.#framing === 'until-close' && this.#from.ended && !this.#from.broken
    this.state = isEnd ? 'complete' : 'broken'
  }

  /** True when a chunk with data is open. */
  #readSize(): boolean {
    if (this.#trailerBytes !== undefined) return this.#readTrailers(this.#trailerBytes)
    const { held } = this.#from
    const start = this.#atChunkEnd ? 2 : 0
    if (this.#atChunkEnd && held.length >= 1 && (held[0] !== 0x0d || (held.length > 1 && held[1] !== 0x0a)))
      return this.#malformed('a chunk is longer than it says')
    const end = lineEnd(held, start, MAX_SIZE_LINE)
    if (end === 'long') return this.#malformed('a chunk size line is too long')
    if (end === 'bare') return this.#malformed('a line ends in LF alone')
    if (end === undefined) return false
    const match = SIZE_LINE.exec(held.toString('latin1', start, end))
    if (match === null) return this.#malformed('a malformed chunk size')
    const size = Number.parseInt(match[1] ?? '', 16)
    this.#from.consume(end + 2)
    if (size === 0) return this.#readTrailers(0)
    this.#atChunkEnd = false
    this.#left = size
    return true
  }

  /** Each complete line is consumed at once, so that slow input is not scanned again and again. */
  #readTrailers(before: number): false {
    for (let read = before; ; ) {
      this.#trailerBytes = read
      const { held } = this.#from
      const end = lineEnd(held, 0, MAX_TRAILERS - read)
      if (end === 'long') return this.#malformed('the trailers are too long')
      if (end === 'bare') return this.#malformed('a line ends in LF alone')
      if (end === undefined) return false
      const line = held.toString('latin1', 0, end)
      const fields = end === 0 ? [] : CONTROL.test(line) ? undefined : readFields([line], 1)
      if (fields === undefined || 'kind' in fields) return this.#malformed('a malformed trailer')
      this.trailers.push(...fields)
      this.#from.consume(end + 2)
      if (end === 0) {
        this.state = 'complete'
        return false
      }
      read += end + 2
    }
  }

  #malformed(why: string): false {
    this.state = 'malformed'
    this.why = why
    return false
  }
}

const CONTROL = /[^\t\x20-\x7e\x80-\xff]/

/** The offset of the CR that ends the line. */
function lineEnd(bytes: Buffer, start: number, max: number): number | 'long' | 'bare' | undefined {
  const lf = bytes.indexOf(0x0a, start)
  if (lf === -1) return bytes.length - start > max ? 'long' : undefined
  if (lf - start > max) return 'long'
  return lf > start && bytes[lf - 1] === 0x0d ? lf - 1 : 'bare'
}

export const chunk = (piece: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`, 'latin1'), piece, CRLF])

/** The end of a chunked body. */
export const lastChunk = (trailers: readonly Field[]): string =>
  `0\r\n${trailers.map(({ name, value }) => `${name}: ${value}\r\n`).join('')}\r\n`

const CRLF = Buffer.from('\r\n')
