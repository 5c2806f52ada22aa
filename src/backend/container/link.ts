/** Until the agent is there: the same shape. */
import { createServer, type Socket } from 'node:net'
import type { ExecOrder, ExecOutput, Execution } from '../backend.ts'

export class AgentLink {
  readonly closed: Promise<void>
  readonly ready: Promise<void> = Promise.resolve()
  readonly #socket: Socket
  constructor(socket: Socket, setup: object) {
    this.#socket = socket
    void setup
    this.closed = new Promise(resolve => socket.once('close', () => resolve()))
  }
  exec(_order: ExecOrder, _output: ExecOutput): Execution {
    throw new Error('no agent yet')
  }
  close(): void {
    this.#socket.destroy()
  }
}

export async function listenForAgent(
  path: string,
): Promise<{ readonly connected: Promise<Socket>; close(): void }> {
  const { promise, resolve } = Promise.withResolvers<Socket>()
  const server = createServer(socket => {
    server.close()
    resolve(socket)
  })
  await new Promise<void>(done => server.listen(path, done))
  return { connected: promise, close: () => void server.close() }
}
