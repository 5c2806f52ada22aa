/** The broker's socket, in a directory that only one sandbox sees and that no other user of the host can enter. */
import { chmodSync, closeSync, renameSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { copyOf } from '../base/kernel/descriptor.ts'
import { listenAtPath } from '../base/kernel/socket.ts'
import { listenInTurns } from '../base/listen-in-turns.ts'
import type { Broker } from './broker.ts'
import { serveConnection } from './session.ts'

export interface Listening {
  /** Ends every transfer and connection. */
  close(): Promise<void>
}

export async function listen(
  path: string,
  broker: Broker,
  fail: (error: unknown) => void,
): Promise<Listening> {
  const open = new Set<Socket>()
  const serve = (socket: Socket): void => {
    socket.on('error', () => undefined)
    if (open.size >= broker.limits.maxConnections) {
      socket.destroy()
      return
    }
    open.add(socket)
    serveConnection(socket, broker)
      .catch(fail)
      .finally(() => open.delete(socket))
  }
  // The socket gets its final name after its mode, because the sandbox may run as another user. On the host, the parent
  // directory keeps other users out.
  const temporary = `${path}.new`
  const fd = listenAtPath(temporary, broker.limits.maxConnections)
  chmodSync(temporary, 0o666)
  renameSync(temporary, path)
  const listener = listenInTurns(accepted => {
    const server = createServer(socket => {
      accepted()
      serve(socket)
    })
    server.once('error', fail).unref()
    server.listen({ fd: copyOf(fd) })
    return { stop: () => void server.close() }
  })
  return {
    close: async () => {
      listener.stop()
      closeSync(fd)
      const ended = broker.close()
      for (const socket of open) socket.destroy()
      await ended
    },
  }
}
