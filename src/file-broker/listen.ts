/** The broker's socket, in a directory that only one sandbox sees and that no other user of the host can enter. */
import { listenInside } from '../base/listen-inside.ts'
import type { Broker } from './broker.ts'
import { serveConnection } from './session.ts'

export interface Listening {
  /** Ends every transfer and connection. */
  close(): Promise<void>
}

export function listen(path: string, broker: Broker, fail: (error: unknown) => void): Listening {
  const { closeAll } = listenInside(path, {
    most: broker.limits.maxConnections,
    serve: socket => serveConnection(socket, broker),
    fail,
  })
  return {
    close: async () => {
      const ended = broker.close()
      closeAll()
      await ended
    },
  }
}
