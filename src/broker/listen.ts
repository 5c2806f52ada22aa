/** The broker's door: a socket in a directory that one sandbox sees, and that nobody else on the host may enter. */
import { chmodSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
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
  const server = createServer(socket => {
    socket.on('error', () => undefined)
    if (open.size >= broker.limits.maxConnections) {
      socket.destroy()
      return
    }
    open.add(socket)
    serveConnection(socket, broker)
      .catch(fail)
      .finally(() => open.delete(socket))
  })
  server.unref()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve())
  })
  // Inside it may be another user who connects; outside, the directory above lets nobody pass.
  chmodSync(path, 0o666)
  return {
    close: async () => {
      const ended = broker.close()
      for (const socket of open) socket.destroy()
      await ended
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}
