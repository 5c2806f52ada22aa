/**
 * Connections inside a sandbox with a kernel of its own, on channels of the exec daemon. The supervisor dials servers of
 * the sandbox, for forwarded ports, and accepts clients of the file broker. A client waits until the supervisor takes it.
 */
import { chmodSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { encodeReport } from '../protocol/exec-messages.ts'
import { BROKER_IN_GUEST } from '../protocol/guest-paths.ts'
import type { Outbox } from '../protocol/outbox.ts'
import { Connection } from './connection.ts'

/** A server may listen on only one of them. */
const LOOPBACK = ['127.0.0.1', '::1']
/** Clients of the file broker that wait for the supervisor. */
const MAX_WAITING = 64

export class Connections {
  readonly #outbox: Outbox
  readonly #open = new Map<number, Connection>()
  readonly #dialling = new Set<number>()
  readonly #waiting: Connection[] = []
  /** Channels for clients that have not come yet. */
  readonly #accepting: number[] = []
  #listener: Bun.UnixSocketListener<Connection> | undefined

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  get(channel: number): Connection | undefined {
    return this.#open.get(channel)
  }

  dial(channel: number, port: number): void {
    this.#dialling.add(channel)
    void this.#dial(port).then(
      connection => {
        const isWanted = this.#dialling.delete(channel)
        this.#begin(channel, connection)
        if (!isWanted) connection.end()
      },
      error => {
        this.#dialling.delete(channel)
        this.#fail(channel, errnoOf(error) ?? 'ECONNREFUSED')
      },
    )
  }

  accept(channel: number): void {
    this.#listener ??= this.#listen()
    this.#accepting.push(channel)
    this.#match()
  }

  /** False when the channel is not a connection. */
  end(channel: number): boolean {
    const connection = this.#open.get(channel)
    connection?.end()
    return this.#dialling.delete(channel) || connection !== undefined
  }

  async #dial(port: number): Promise<Connection> {
    let refused: unknown
    for (const hostname of LOOPBACK)
      try {
        const connection = new Connection()
        const socket = await Bun.connect({
          hostname,
          port,
          allowHalfOpen: true,
          data: connection,
          socket: Connection.handlers,
        })
        // Without a listener, a socket with the same local port connects to itself.
        if (socket.localPort !== port) return connection
        socket.terminate()
      } catch (error) {
        refused ??= error
      }
    throw refused ?? new Error('no server listens')
  }

  #listen(): Bun.UnixSocketListener<Connection> {
    const listener = Bun.listen<Connection>({
      unix: BROKER_IN_GUEST,
      allowHalfOpen: true,
      socket: {
        ...Connection.handlers,
        open: socket => {
          socket.data = new Connection()
          Connection.handlers.open(socket)
          if (this.#waiting.length >= MAX_WAITING) return socket.data.end()
          this.#waiting.push(socket.data)
          this.#match()
        },
      },
    })
    chmodSync(BROKER_IN_GUEST, 0o666)
    return listener
  }

  #match(): void {
    while (this.#accepting.length > 0 && this.#waiting.length > 0) {
      const connection = this.#waiting.shift()
      const channel = this.#accepting.shift()
      if (connection !== undefined && channel !== undefined) this.#begin(channel, connection)
    }
  }

  #begin(channel: number, connection: Connection): void {
    this.#open.set(channel, connection)
    this.#outbox.send(encodeReport({ kind: 'started', channel }))
    connection.begin(channel, this.#outbox, () => this.#open.delete(channel))
  }

  #fail(channel: number, errno: string): void {
    this.#outbox.send(encodeReport({ kind: 'failed', channel, errno, reason: 'no server listens' }))
  }
}
