/** The supervisor's end of the exec daemon's socket. Everything that it receives is hostile until it is parsed. */
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs'
import { basename, dirname } from '../base/posix-path.ts'

export interface DaemonSocketEvents {
  data(bytes: Uint8Array): void
  drain(): void
  close(): void
}

type Native = Bun.Socket<DaemonSocket>

export class DaemonSocket {
  #native: Native | undefined
  #events: DaemonSocketEvents | undefined
  #closed: boolean = false

  /**
   * Handlers that all sockets share. An exec daemon that sends before it is configured is not pen's, so its socket is
   * closed.
   */
  static readonly handlers = {
    open: (native: Native) => {
      native.data.#native = native
      if (native.data.#closed) native.terminate()
      else native.data.#events?.drain()
    },
    data: (native: Native, bytes: Uint8Array) => {
      const events = native.data.#events
      if (events === undefined) native.data.close()
      else events.data(bytes)
    },
    drain: (native: Native) => native.data.#events?.drain(),
    close: (native: Native) => native.data.#end(),
    error: (native: Native) => native.data.#end(),
  }

  listen(events: DaemonSocketEvents): void {
    this.#events = events
    if (this.#closed) events.close()
  }

  /** Returns how many bytes were taken. The caller keeps the rest until there is room. */
  write(bytes: Uint8Array): number {
    return this.#closed ? bytes.length : (this.#native?.write(bytes) ?? 0)
  }

  /** Takes one end of a socket pair. What was sent before waits until then. */
  adopt(fd: number): void {
    const options = { fd, data: this, socket: DaemonSocket.handlers }
    Bun.connect(options as unknown as Bun.UnixSocketOptions<DaemonSocket>).catch(() => this.close())
  }

  close(): void {
    this.#native?.terminate()
    this.#end()
  }

  #end(): void {
    if (this.#closed) return
    this.#closed = true
    this.#events?.close()
  }
}

/** Takes one end of a socket pair. The exec daemon has the other end. */
export function adoptDaemonSocket(fd: number): DaemonSocket {
  const socket = new DaemonSocket()
  socket.adopt(fd)
  return socket
}

export interface DaemonListener {
  readonly connected: Promise<DaemonSocket>
  /** Stops waiting for a connection. */
  close(): void
}

/** Accepts exactly one connection, then closes and removes the socket. */
export function listenForDaemon(path: string): DaemonListener {
  const { promise, resolve } = Promise.withResolvers<DaemonSocket>()
  // A socket's path is limited to 107 bytes. The path through the open directory is short.
  const directory = openSync(dirname(path), 'r')
  let open = true
  const close = () => {
    if (!open) return
    open = false
    listener.stop()
    rmSync(path, { force: true })
    closeSync(directory)
  }
  const listener = Bun.listen<DaemonSocket>({
    unix: `/proc/self/fd/${directory}/${basename(path)}`,
    socket: {
      ...DaemonSocket.handlers,
      open: native => {
        native.data = new DaemonSocket()
        DaemonSocket.handlers.open(native)
        if (!open) return native.data.close()
        close()
        resolve(native.data)
      },
    },
  })
  // The exec daemon runs as another user than the supervisor. The directories above decide who can reach the socket.
  chmodSync(path, 0o666)
  return { connected: promise, close }
}
