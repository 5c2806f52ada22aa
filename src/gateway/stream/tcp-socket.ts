/**
 * A TCP connection on the sockets of Bun. node:net uses the same sockets but costs four times the CPU per connection. It
 * also reads ahead, so a peer that does not read costs memory. The connection can go on as TLS: see decision 80.
 */
import { socketOption } from '../../base/kernel/socket.ts'
import type { SocketEvents, StreamSocket, TlsSide } from './stream-socket.ts'

export type NativeSocket = Bun.Socket<TcpSocket> & {
  readonly fd: number
  close(): void
  pause(): void
  resume(): void
}

/** Options of the upgrade that Bun's types lack. */
interface Upgrade {
  readonly isServer?: boolean
  readonly initialData?: Uint8Array
  readonly data: TcpSocket
  readonly tls: object
  readonly socket: object
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
  /** From here on `#native` is the TLS side. Bun still reports the encrypted bytes to the plain side's handlers. */
  #isSecure: boolean = false
  /** Set during a TLS handshake. Called once. */
  #onSecured: ((error: unknown) => void) | undefined

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

  startTls(side: TlsSide): Promise<unknown> {
    const native = this.#native
    if (native === undefined || this.#isSecure || this.#queued > 0)
      return Promise.resolve(new Error('this connection cannot go on as TLS'))
    this.resume()
    this.#isSecure = true
    return new Promise(resolve => {
      this.#onSecured = resolve
      const ALPNProtocols = alpn(side.protocol ?? 'http/1.1')
      const tls = { ...side, rejectUnauthorized: !side.isServer, ALPNProtocols }
      const upgrade: Upgrade = {
        ...(side.isServer && { isServer: true, initialData: side.read }),
        data: this,
        tls,
        socket: TcpSocket.secureHandlers,
      }
      ;(native as unknown as { upgradeTLS(options: Upgrade): unknown }).upgradeTLS(upgrade)
    })
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

  get isSecure(): boolean {
    return this.#isSecure
  }

  get descriptor(): number | undefined {
    const fd = this.#isClosing || this.#isSecure ? undefined : this.#native?.fd
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
      if (!self.#isSecure) self.#takeData(chunk)
    },
    drain({ data: self }: NativeSocket): void {
      if (self.#isSecure) return
      if (self.onConnected === undefined) self.#flush()
      else self.#checkConnected()
    },
    end({ data: self }: NativeSocket): void {
      if (!self.#isSecure) self.#takeEnd()
    },
    error(native: NativeSocket): void {
      if (!native.data.#isSecure) native.terminate()
    },
    close({ data: self }: NativeSocket, error?: unknown): void {
      if (!self.#isSecure) self.#takeClose(error)
    },
  }

  /** The same for connections that go on as TLS. */
  static readonly secureHandlers = {
    open(native: NativeSocket): void {
      native.data.#native = native
    },
    handshake(native: NativeSocket, isDone: boolean, error: unknown): void {
      native.data.#takeHandshake(isDone ? undefined : (error ?? new Error('no handshake')))
    },
    data({ data: self }: NativeSocket, chunk: Buffer): void {
      self.#takeData(chunk)
    },
    drain({ data: self }: NativeSocket): void {
      if (self.#onSecured === undefined) self.#flush()
    },
    end({ data: self }: NativeSocket): void {
      self.#takeEnd()
    },
    error(native: NativeSocket): void {
      native.terminate()
    },
    close({ data: self }: NativeSocket, error?: unknown): void {
      self.#takeHandshake(error ?? new Error('closed'))
      self.#takeClose(error)
    },
  }

  #takeHandshake(error: unknown): void {
    const done = this.#onSecured
    this.#onSecured = undefined
    done?.(error)
  }

  #takeData(chunk: Buffer): void {
    if (this.#events !== undefined) this.#events.data(chunk)
    else {
      this.#early ??= []
      this.#early.push(chunk)
      this.pause()
    }
  }

  #takeClose(error: unknown): void {
    const { onConnected, onClosed } = this
    // After our half close, Bun reports that of the peer only as a close.
    const isOver = error === undefined && this.#isShutDown && !this.#isClosing
    this.#native = undefined
    this.#isClosing = true
    this.#queue = []
    this.#queued = 0
    this.onConnected = undefined
    this.onClosed = undefined
    // Asynchronous, because `destroy` and `reset` also lead here, in the middle of a caller.
    queueMicrotask(() => {
      if (isOver) this.#takeEnd()
      onClosed?.()
      onConnected?.(error ?? new Error('closed'))
      this.#closedBroken = error !== undefined || !this.#hasEnded || !this.#isShutDown
      this.#events?.close(this.#closedBroken)
    })
  }

  #takeEnd(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#events?.end()
  }
}

/** One protocol in wire format, as Bun wants it. */
const alpn = (protocol: string): Buffer => Buffer.from(`${String.fromCharCode(protocol.length)}${protocol}`)

const IPPROTO_TCP = 6
const TCP_INFO = 11
export const TCP_STATE = { established: 1, synSent: 2, closed: 7 } as const

export const connectionState = (fd: number): number => socketOption(fd, IPPROTO_TCP, TCP_INFO) & 0xff
