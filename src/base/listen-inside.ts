/** A socket of pen's in a directory that only one sandbox sees and that no other user of the host can enter. */
import { chmodSync, closeSync, renameSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { copyOf } from './kernel/descriptor.ts'
import { listenAtPath } from './kernel/socket.ts'
import { listenInTurns } from './listen-in-turns.ts'

interface InsideListener {
  /** More connections at once are closed. */
  readonly most: number
  /** Resolves when the connection is no longer used. */
  readonly serve: (socket: Socket) => Promise<void>
  /** Called with mistakes of pen. */
  readonly fail: (error: unknown) => void
}

/** `close` accepts no more. `closeAll` also ends every connection. */
export function listenInside(
  path: string,
  { most, serve, fail }: InsideListener,
): { close(): void; closeAll(): void } {
  const open = new Set<Socket>()
  const accept = (socket: Socket): void => {
    socket.on('error', () => undefined)
    if (open.size >= most) {
      socket.destroy()
      return
    }
    open.add(socket)
    serve(socket)
      .catch(fail)
      .finally(() => open.delete(socket))
  }
  // The socket gets its final name after its mode, because the sandbox may run as another user. On the host, the parent
  // directory keeps other users out.
  const temporary = `${path}.new`
  const fd = listenAtPath(temporary, most)
  chmodSync(temporary, 0o666)
  renameSync(temporary, path)
  const listener = listenInTurns(accepted => {
    const server = createServer(socket => {
      accepted()
      accept(socket)
    })
    server.once('error', fail).unref()
    server.listen({ fd: copyOf(fd) })
    return { stop: () => void server.close() }
  })
  const close = (): void => {
    listener.stop()
    closeSync(fd)
  }
  return {
    close,
    closeAll: () => {
      close()
      for (const socket of open) socket.destroy()
    },
  }
}
