/** Both ends of the control socket, on Bun's own sockets: loading node:net would cost a command more time than all the rest. */
import { SOL } from '../base/kernel/socket.ts'
import { tryCall } from '../base/kernel/system-call.ts'
import { Outbox } from '../protocol/outbox.ts'
import type { ControlEvents, ControlStream } from './execution.ts'

const SO_PEERCRED = 17

type Native = Bun.Socket<ControlSocket> & { readonly fd: number }

export class ControlSocket implements ControlStream {
  #native: Native | undefined
  #events: ControlEvents | undefined
  readonly #outbox = new Outbox(bytes => this.#native?.write(bytes) ?? 0)
  #isEnding: boolean = false
  #isClosed: boolean = false

  attach(events: ControlEvents): void {
    this.#events = events
  }

  send(bytes: Uint8Array): void {
    if (!this.#isEnding) this.#outbox.send(bytes)
  }

  room(): Promise<void> | undefined {
    return this.#outbox.room()
  }

  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    const sent = this.#outbox.room()
    if (sent === undefined) this.#native?.end()
    else void sent.then(() => this.#native?.end())
  }

  destroy(): void {
    this.#native?.terminate()
  }

  /** Whether the kernel says that the peer is this user or root. False when the kernel does not answer. */
  get isOurUser(): boolean {
    const fd = this.#native?.fd
    if (fd === undefined) return false
    // struct ucred { pid, uid, gid }
    const peer = new Uint32Array(3)
    const size = new Uint32Array([peer.byteLength])
    if (tryCall('getsockopt', fd, SOL.socket, SO_PEERCRED, peer, size) !== 0) return false
    return peer[1] === process.geteuid?.() || peer[1] === 0
  }

  /** Without the mask, other users could connect before the mode is set. */
  static listen(path: string, accept: (socket: ControlSocket) => void): { stop(closeAll?: boolean): void } {
    const before = process.umask(0o177)
    try {
      return Bun.listen<ControlSocket>({
        unix: path,
        socket: {
          ...ControlSocket.handlers,
          open: native => {
            native.data = new ControlSocket()
            ControlSocket.handlers.open?.(native)
            accept(native.data)
          },
        },
      })
    } finally {
      process.umask(before)
    }
  }

  static readonly handlers: Bun.SocketHandler<ControlSocket> = {
    open: native => {
      native.data.#native = native as Native
    },
    data: (native, bytes) => native.data.#events?.data(bytes),
    drain: native => native.data.#outbox.drain(),
    close: native => native.data.#close(),
    end: native => native.data.#close(),
    error: native => native.data.#close(),
    connectError: () => undefined,
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#outbox.close()
    this.#events?.closed()
  }
}
