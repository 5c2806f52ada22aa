/**
 * One end of a connection, read at the reader's pace: bytes are held (bounded, then the socket is paused) until they
 * are consumed, or pass straight through to another end. The socket has the same listener all its life, so no byte
 * falls between two readers.
 */

import type { BufferBudget, BufferOwner } from './buffer-budget.ts'
import { BULK, moveBulk } from './bulk.ts'
import type { SocketEvents, StreamSocket } from './stream-socket.ts'

/** More than any head that is waited for; a pause comes after it, never before a head can be complete. */
const HOLD = 131_072

/** Less than this is not worth counting. */
const WORTH_COUNTING = 4096

const EMPTY = Buffer.alloc(0)

export class ByteStream implements BufferOwner, SocketEvents {
  readonly socket: StreamSocket
  received = 0
  sent = 0
  lastActive = performance.now()
  /** The peer has sent all it will send. */
  ended: boolean = false
  closed: boolean = false
  /** Closed by an error or a reset, not by two goodbyes. */
  broken: boolean = false
  onClose: (() => void) | undefined
  onEnd: (() => void) | undefined
  onOverrun: (() => void) | undefined
  /** Asked before bytes pass to the other end: how many of those held may go now. */
  gate: ((held: Buffer) => number) | undefined

  readonly #counted: BufferBudget | undefined
  #held: Buffer = EMPTY
  /** Own memory in which `#held` may grow; undefined while `#held` is the chunk that came. */
  #room: Buffer | undefined
  #sink: ByteStream | undefined
  #source: ByteStream | undefined
  #discards: boolean = false
  #reader: ((woken: boolean) => void) | undefined
  #readerTimer: ReturnType<typeof setTimeout> | undefined
  #writers: (() => void)[] = []
  #lingering: ReturnType<typeof setTimeout> | undefined

  constructor(socket: StreamSocket, counted?: BufferBudget) {
    this.socket = socket
    this.#counted = counted
    socket.attach(this)
  }

  get held(): Buffer {
    return this.#held
  }

  /** In memory, not in the kernel: what came and waits, and what could not be sent yet. */
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

  /** Waits for bytes beyond those held. False when the time is over, or no more will come. */
  more(ms?: number): Promise<boolean> {
    if (this.ended || this.closed) return FALSE
    // Whoever waits beside a full hold waits for the end, or for its time.
    if (this.#held.length < HOLD) this.socket.resume()
    return new Promise(resolve => {
      this.#reader = resolve
      if (ms !== undefined) this.#readerTimer = setTimeout(() => this.#wake(false), Math.max(ms, 0))
    })
  }

  /** Ends a wait in `more` as if its time were over. */
  stopWaiting(): void {
    this.#wake(false)
  }

  /** Resolves when the bytes may be forgotten: written, or at least not piling up. False when nobody will read them. */
  write(bytes: Uint8Array | string): Promise<boolean> {
    if (!this.isWritable) return FALSE
    this.lastActive = performance.now()
    const buffer = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
    this.sent += buffer.length
    if (this.socket.write(buffer)) return TRUE
    this.#counted?.note(this)
    return new Promise(resolve => {
      this.#writers.push(() => resolve(this.isWritable))
    })
  }

  /** From now on everything goes to the other end, what is held first. */
  pipeTo(sink: ByteStream): void {
    this.#sink = sink
    sink.#source = this
    const flows = this.#passHeld(sink)
    if (this.#sink !== sink) return
    if (this.ended || this.closed) sink.#endAfter(this)
    else if (flows) this.socket.resume()
    else this.socket.pause()
  }

  /** Nothing is asked any more, and what waited goes on. */
  openGate(): void {
    this.gate = undefined
    if (this.#sink !== undefined && !this.#passHeld(this.#sink)) this.socket.pause()
  }

  #passHeld(sink: ByteStream): boolean {
    if (this.#held.length === 0) return true
    const count = this.gate === undefined ? this.#held.length : this.gate(this.#held)
    return count === 0 || sink.#pass(this.consume(count))
  }

  /** Back to holding. */
  unpipe(): void {
    if (this.#sink !== undefined) this.#sink.#source = undefined
    this.#sink = undefined
  }

  /** A last word and goodbye. What the peer still sends is thrown away for a while: closing at once would be a reset, and it would lose the answer. */
  finish(lastWord: Uint8Array | string, lingerMs: number): void {
    this.unpipe()
    this.#discards = true
    this.consume(this.#held.length)
    if (!this.isWritable) {
      this.reset()
      return
    }
    const bytes = typeof lastWord === 'string' ? Buffer.from(lastWord, 'latin1') : lastWord
    this.sent += bytes.length
    this.socket.write(bytes)
    this.socket.end()
    if (this.ended) return
    this.socket.resume()
    this.#lingering = setTimeout(() => this.reset(), lingerMs)
  }

  reset(): void {
    if (!this.closed) this.socket.reset()
  }

  #pass(bytes: Buffer): boolean {
    if (!this.isWritable) return true
    this.sent += bytes.length
    const flows = this.socket.write(bytes)
    if (!flows) this.#counted?.note(this)
    return flows
  }

  /** The source has said all. When this side's peer has, too, there is nobody left to be half open for. */
  #endAfter(source: ByteStream): void {
    const isOver = this.ended && source.ended && source.#sink === this && this.#sink === source
    if (isOver && this.socket.unsent === 0) this.socket.destroy()
    else this.socket.end()
  }

  /** More is waiting in the kernel, most likely. */
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
    if (this.#held.length >= HOLD) this.socket.pause()
    if (this.#held.length >= WORTH_COUNTING) this.#counted?.note(this)
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
      this.#room = Buffer.allocUnsafeSlow(size < HOLD ? Math.max(size * 2, 1024) : size)
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

const TRUE = Promise.resolve(true)
const FALSE = Promise.resolve(false)
