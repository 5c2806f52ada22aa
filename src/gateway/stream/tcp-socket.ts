/**
 * A TCP connection on the sockets of Bun. node:net uses the same sockets but costs four times the CPU per connection. It
 * also reads ahead, so a peer that does not read costs memory.
 */
import { socketOption } from '../../base/kernel/socket.ts'
import type { SocketEvents, StreamSocket } from './stream-socket.ts'

export type NativeSocket = Bun.Socket<TcpSocket> & {
  readonly fd: number
  close(): void
  pause(): void
  resume(): void
}

export class TcpSocket implements StreamSocket {
  #native: NativeSocket | undefined
  #events: SocketEvents | undefined
  /** Bytes that arrived without a listener. */
  #early: Buffer[] | undefined
  #queue: Uint8Array[] = []
  #queued = 0
  /** The peer has half-closed. We half-close when the queue is empty (`#isEnding`), or have done so (`#isShutDown`). */
  #hasEnded: boolean = false
  #isEnding: boolean = false
  #isShutDown: boolean = false
  #isPaused: boolean = false
  #isClosing: boolean = false
  /** Set when the socket is closed. */
  #closedBroken: boolean | undefined
  /** Set while connecting. Called once: with undefined when connected, else with the error. */
  onConnected: ((error: unknown) => void) | undefined
  onClosed: (() => void) | undefined

  attach(events: SocketEvents): void {
    this.#events = events
    const early = this.#early
    if (early !== undefined) {
      this.#early = undefined
      this.resume()
      for (const chunk of early) events.data(chunk)
    }
    if (this.#hasEnded) events.end()
    const broken = this.#closedBroken
    if (broken !== undefined) queueMicrotask(() => events.close(broken))
  }

  write(bytes: Uint8Array): boolean {
    if (!this.isWritable) return true
    const native = this.#native
    const sent = this.#queued > 0 || native === undefined ? 0 : Math.max(native.write(bytes), 0)
    if (sent === bytes.length) return true
    this.#queue.push(sent === 0 ? bytes : bytes.subarray(sent))
    this.#queued += bytes.length - sent
    return false
  }

  end(): void {
    if (this.#isEnding || this.#native === undefined) return
    this.#isEnding = true
    if (this.#queued === 0) this.#shutDown()
  }

  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#native?.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#native?.resume()
  }

  destroy(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#isShutDown = true
    this.#native?.close()
  }

  reset(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    this.#native?.terminate()
  }

  get isWritable(): boolean {
    return !(this.#isClosing || this.#isEnding || this.#native === undefined)
  }

  get unsent(): number {
    return this.#queued
  }

  get unread(): number {
    return this.#early?.reduce((sum, chunk) => sum + chunk.length, 0) ?? 0
  }

  get descriptor(): number | undefined {
    const fd = this.#isClosing ? undefined : this.#native?.fd
    return fd !== undefined && fd >= 0 ? fd : undefined
  }

  get local(): { readonly address: string; readonly port: number } | undefined {
    const native = this.#native
    return native === undefined ? undefined : { address: native.localAddress, port: native.localPort }
  }

  get remote(): { readonly address: string; readonly port: number } | undefined {
    const native = this.#native
    return native === undefined ? undefined : { address: native.remoteAddress, port: native.remotePort }
  }

  #shutDown(): void {
    this.#isShutDown = true
    this.#native?.shutdown()
  }

  #flush(): void {
    const native = this.#native
    while (this.#queued > 0 && native !== undefined) {
      const [first] = this.#queue
      if (first === undefined) break
      const sent = Math.max(native.write(first), 0)
      this.#queued -= sent
      if (sent < first.length) {
        if (sent > 0) this.#queue[0] = first.subarray(sent)
        return
      }
      this.#queue.shift()
    }
    if (this.#isEnding && !this.#isShutDown) this.#shutDown()
    else this.#events?.drain()
  }

  #checkConnected(): void {
    const { onConnected, descriptor } = this
    if (onConnected === undefined || descriptor === undefined) return
    if (connectionState(descriptor) !== TCP_STATE.established) return
    this.onConnected = undefined
    queueMicrotask(() => onConnected(undefined))
  }

  /** The handlers of Bun, shared by all connections. */
  static readonly handlers = {
    open(native: NativeSocket): void {
      native.data.#native = native
    },
    data({ data: self }: NativeSocket, chunk: Buffer): void {
      if (self.#events !== undefined) self.#events.data(chunk)
      else {
        self.#early ??= []
        self.#early.push(chunk)
        self.pause()
      }
    },
    drain({ data: self }: NativeSocket): void {
      if (self.onConnected === undefined) self.#flush()
      else self.#checkConnected()
    },
    end({ data: self }: NativeSocket): void {
      self.#takeEnd()
    },
    error(native: NativeSocket): void {
      native.terminate()
    },
    close({ data: self }: NativeSocket, error?: unknown): void {
      const { onConnected, onClosed } = self
      // After our half close, Bun reports that of the peer only as a close.
      const isOver = error === undefined && self.#isShutDown && !self.#isClosing
      self.#native = undefined
      self.#isClosing = true
      self.#queue = []
      self.#queued = 0
      self.onConnected = undefined
      self.onClosed = undefined
      // Asynchronous, because `destroy` and `reset` also lead here, in the middle of a caller.
      queueMicrotask(() => {
        if (isOver) self.#takeEnd()
        onClosed?.()
        onConnected?.(error ?? new Error('closed'))
        self.#closedBroken = error !== undefined || !self.#hasEnded || !self.#isShutDown
        self.#events?.close(self.#closedBroken)
      })
    },
  }

  #takeEnd(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#events?.end()
  }
}

const IPPROTO_TCP = 6
const TCP_INFO = 11
export const TCP_STATE = { established: 1, synSent: 2, closed: 7 } as const

export const connectionState = (fd: number): number => socketOption(fd, IPPROTO_TCP, TCP_INFO) & 0xff
