/**
 * One end of a connection with flow control. Bytes are held until a reader consumes them, or are piped to another stream.
 * When too many are held, the socket pauses. The socket keeps one listener for its whole life, so no byte is lost between
 * two readers.
 */

import type { BufferBudget, BufferOwner } from './buffer-budget.ts'
import { BULK, moveBulk } from './bulk.ts'
import type { SocketEvents, StreamSocket } from './stream-socket.ts'

/** More than the largest head, so that a head is always complete before the socket pauses. */
const MAX_HELD = 131_072

/** Smaller amounts are not counted. */
const MIN_COUNTED = 4096

const EMPTY = Buffer.alloc(0)

export class ByteStream implements BufferOwner, SocketEvents {
  readonly socket: StreamSocket
  received = 0
  sent = 0
  lastActive = performance.now()
  /** The peer has half-closed: no more bytes come. */
  ended: boolean = false
  closed: boolean = false
  /** Closed by an error or a reset, not by both sides. */
  broken: boolean = false
  onClose: (() => void) | undefined
  onEnd: (() => void) | undefined
  onOverrun: (() => void) | undefined
  /** Called before bytes pass on. Returns how many of the held bytes may pass now. */
  gate: ((held: Buffer) => number) | undefined

  readonly #counted: BufferBudget | undefined
  #held: Buffer = EMPTY
  /** A buffer in which `#held` can grow. Undefined while `#held` is a received chunk. */
  #room: Buffer | undefined
  #sink: ByteStream | undefined
  #source: ByteStream | undefined
  #discards: boolean = false
  #reader: ((woken: boolean) => void) | undefined
  #readerTimer: ReturnType<typeof setTimeout> | undefined
  #writers: (() => void)[] = []
  #lingering: ReturnType<typeof setTimeout> | undefined

  constructor(socket: StreamSocket, counted?: BufferBudget | undefined) {
    this.socket = socket
    this.#counted = counted
    socket.attach(this)
  }

  get held(): Buffer {
    return this.#held
  }

  /** Bytes in memory, not in the kernel: received and held, or not yet sent. */
  get buffered(): number {
    if (this.closed) return 0
    return this.#held.length + this.socket.unread + this.socket.unsent
  }

  overrun(): void {
    this.onOverrun?.()
    this.reset()
  }

  get isWritable(): boolean {
    return !this.closed && this.socket.isWritable
  }

  consume(count: number): Buffer {
    const taken = this.#held.subarray(0, count)
    this.#held = count >= this.#held.length ? EMPTY : this.#held.subarray(count)
    this.#room = undefined
    return taken
  }

  /** Waits for bytes beyond the held ones. False on a timeout, or when no more bytes come. */
  more(ms?: number): Promise<boolean> {
    if (this.ended || this.closed) return FALSE
    // With a full buffer, the caller waits only for the end or the timeout.
    if (this.#held.length < MAX_HELD) this.socket.resume()
    return new Promise(resolve => {
      this.#reader = resolve
      if (ms !== undefined) this.#readerTimer = setTimeout(() => this.#wake(false), Math.max(ms, 0))
    })
  }

  /** Reads the held bytes, and again when more come, until `read` returns a value. Undefined when `more` fails. */
  async readUntil<T>(read: (held: Buffer) => T | undefined, ms?: number): Promise<T | undefined> {
    const end = ms === undefined ? undefined : performance.now() + ms
    for (;;) {
      const value = read(this.#held)
      if (value !== undefined) return value
      if (!(await this.more(end === undefined ? undefined : end - performance.now()))) return undefined
    }
  }

  /** Ends a wait in `more` like a timeout. */
  stopWaiting(): void {
    this.#wake(false)
  }

  /** Resolves when the socket has room again. False when the connection is closed. */
  write(bytes: Uint8Array | string): Promise<boolean> {
    if (!this.isWritable) return FALSE
    this.lastActive = performance.now()
    if (this.#pass(asBytes(bytes))) return TRUE
    return new Promise(resolve => {
      this.#writers.push(() => resolve(this.isWritable))
    })
  }

  /** Pipes everything to another stream, held bytes first. */
  pipeTo(sink: ByteStream): void {
    this.#sink = sink
    sink.#source = this
    const flows = this.#passHeld(sink)
    if (this.#sink !== sink) return
    if (this.ended || this.closed) sink.#endAfter(this)
    else if (flows) this.socket.resume()
    else this.socket.pause()
  }

  /** Removes the gate and passes the held bytes on. */
  openGate(): void {
    this.gate = undefined
    this.passHeld()
  }

  /** Asks the gate again. */
  passHeld(): void {
    if (this.#sink !== undefined && !this.#passHeld(this.#sink)) this.socket.pause()
  }

  #passHeld(sink: ByteStream): boolean {
    if (this.#held.length === 0) return true
    const count = this.gate === undefined ? this.#held.length : this.gate(this.#held)
    return count === 0 || sink.#pass(this.consume(count))
  }

  /** Stops piping. Further bytes are held. */
  unpipe(): void {
    if (this.#sink !== undefined) this.#sink.#source = undefined
    this.#sink = undefined
  }

  /** Sends a last reply and half-closes. Discards input until `lingerMs`, because an early close would reset the peer. */
  finish(reply: Uint8Array | string, lingerMs: number): void {
    this.unpipe()
    this.#discards = true
    this.consume(this.#held.length)
    if (!this.isWritable) {
      this.reset()
      return
    }
    this.#pass(asBytes(reply))
    this.socket.end()
    if (this.ended) return
    this.socket.resume()
    this.#lingering = setTimeout(() => this.reset(), lingerMs)
  }

  reset(): void {
    if (!this.closed) this.socket.reset()
  }

  /** False when the caller must wait for room. */
  #pass(bytes: Uint8Array): boolean {
    if (!this.isWritable) return true
    this.sent += bytes.length
    const flows = this.socket.write(bytes)
    if (!flows) this.#counted?.note(this)
    return flows
  }

  /** The source has ended. If this side's peer has ended too, the connection closes fully. */
  #endAfter(source: ByteStream): void {
    const isOver = this.ended && source.ended && source.#sink === this && this.#sink === source
    if (isOver && this.socket.unsent === 0) this.socket.destroy()
    else this.socket.end()
  }

  /** Moves further bytes that probably wait in the kernel. */
  #passMore(sink: ByteStream): void {
    const { bytes, rest, isReset } = moveBulk(this.socket, sink.socket)
    this.received += bytes
    sink.sent += bytes - (rest?.length ?? 0)
    if (rest !== undefined && !sink.#pass(rest)) this.socket.pause()
    if (!isReset) return
    this.broken = true
    this.socket.destroy()
  }

  data(chunk: Buffer): void {
    this.received += chunk.length
    this.lastActive = performance.now()
    if (this.#sink !== undefined) {
      this.#sink.lastActive = this.lastActive
      if (this.gate !== undefined) {
        this.#hold(chunk)
        if (!this.#passHeld(this.#sink)) this.socket.pause()
      } else if (!this.#sink.#pass(chunk)) this.socket.pause()
      else if (chunk.length >= BULK) this.#passMore(this.#sink)
      return
    }
    if (this.#discards) return
    this.#hold(chunk)
    if (this.#held.length >= MAX_HELD) this.socket.pause()
    if (this.#held.length >= MIN_COUNTED) this.#counted?.note(this)
    this.#wake(true)
  }

  #hold(chunk: Buffer): void {
    const had = this.#held.length
    if (had === 0) {
      this.#held = chunk
      this.#room = undefined
      return
    }
    const size = had + chunk.length
    if (this.#room === undefined || this.#room.length < size) {
      this.#room = Buffer.allocUnsafeSlow(size < MAX_HELD ? Math.max(size * 2, 1024) : size)
      this.#held.copy(this.#room)
    }
    chunk.copy(this.#room, had)
    this.#held = this.#room.subarray(0, size)
  }

  end(): void {
    this.ended = true
    this.onEnd?.()
    if (this.#sink !== undefined) this.#sink.#endAfter(this)
    else if (this.#discards) this.socket.end()
    this.#wake(false)
  }

  drain(): void {
    this.#source?.socket.resume()
    this.#releaseWriters()
  }

  close(isBroken: boolean): void {
    if (isBroken) this.broken = true
    this.closed = true
    clearTimeout(this.#lingering)
    this.#wake(false)
    this.#releaseWriters()
    this.onClose?.()
  }

  #wake(woken: boolean): void {
    const reader = this.#reader
    if (reader === undefined) return
    this.#reader = undefined
    clearTimeout(this.#readerTimer)
    reader(woken)
  }

  #releaseWriters(): void {
    if (this.#writers.length === 0) return
    const writers = this.#writers
    this.#writers = []
    for (const writer of writers) writer()
  }
}

const asBytes = (bytes: Uint8Array | string): Uint8Array =>
  typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes

const TRUE = Promise.resolve(true)
const FALSE = Promise.resolve(false)
