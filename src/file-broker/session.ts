/** One connection from the sandbox. A hostile client that sends garbage or does not read harms only itself. */
import type { Socket } from 'node:net'
import { errnoOf, PenError } from '../base/error.ts'
import { encodeReply, type RequestMessage, RequestReader } from '../protocol/broker-messages.ts'
import { protocolError } from '../protocol/frame.ts'
import type { Broker } from './broker.ts'
import type { Exchange, Peer } from './exchange.ts'
import { Refusal } from './refusal.ts'

/** Serves the connection to its end. Throws only on a bug in pen. */
export async function serveConnection(socket: Socket, broker: Broker): Promise<void> {
  const session = new Session(socket, broker)
  const reader = new RequestReader()
  try {
    for await (const bytes of socket) for (const ask of reader.push(bytes as Buffer)) await session.take(ask)
  } catch (error) {
    const isClientError = (error instanceof PenError && error.code === 'WIRE') || errnoOf(error) !== undefined
    if (!isClientError && !socket.destroyed) throw error
  } finally {
    session.end()
  }
}

class Session {
  readonly #socket: Socket
  readonly #broker: Broker
  readonly #exchanges = new Map<number, Exchange>()
  #lastChannel = 0

  constructor(socket: Socket, broker: Broker) {
    this.#socket = socket
    this.#broker = broker
  }

  async take(ask: RequestMessage): Promise<void> {
    const { channel } = ask
    if (ask.kind === 'request') {
      if (channel <= this.#lastChannel) throw protocolError('a channel number that was used before')
      this.#lastChannel = channel
      // A client that does not read its replies gets no further request served.
      await this.#room()
      await this.#broker.pace.wait()
      const over = () => void this.#exchanges.delete(channel)
      this.#exchanges.set(channel, this.#broker.begin(ask.request, this.#peer(channel), over))
      return
    }
    if (channel > this.#lastChannel) throw protocolError('a channel that was never opened')
    // The request may have been refused meanwhile. Its messages are dropped.
    const exchange = this.#exchanges.get(channel)
    if (ask.kind === 'data') exchange?.received(ask.bytes)
    else if (ask.kind === 'window') exchange?.granted(ask.bytes)
    else if (ask.kind === 'complete') exchange?.completed()
    else exchange?.end(new Refusal('client'))
  }

  end(): void {
    this.#socket.destroy()
    for (const exchange of this.#exchanges.values()) exchange.end(new Refusal('client'))
  }

  #peer(channel: number): Peer {
    return {
      send: answer => {
        if (!this.#socket.destroyed) this.#socket.write(encodeReply({ ...answer, channel }))
      },
      room: () => this.#room(),
    }
  }

  async #room(): Promise<void> {
    const socket = this.#socket
    if (!socket.writableNeedDrain || socket.destroyed) return
    await new Promise<void>(resolve => {
      const done = () => {
        socket.off('drain', done)
        socket.off('close', done)
        resolve()
      }
      socket.on('drain', done)
      socket.on('close', done)
    })
  }
}
