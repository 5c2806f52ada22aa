/** The broker's door: a socket in a directory that one sandbox sees, and that nobody else on the host may enter. */
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
  // Under its name when whoever finds it there may connect: inside that may be another user. Outside, the directory above lets nobody pass.
  const unnamed = `${path}.new`
  const fd = listenAtPath(unnamed, broker.limits.maxConnections)
  chmodSync(unnamed, 0o666)
  renameSync(unnamed, path)
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
