/** The filtered SSH agent of one sandbox: a socket inside, and for each of its connections one to the host's agent. */
import { connect, type Socket } from 'node:net'
import type { AuditSink } from '../audit/event.ts'
import { listenInside } from '../base/listen-inside.ts'
import { TokenBucket } from '../base/token-bucket.ts'
import { protocolError } from '../protocol/frame.ts'
import { text } from '../protocol/ssh-packets.ts'
import { AgentFilter, type AgentGrant } from './agent-filter.ts'

interface AgentOptions {
  /** Of the socket, by a path that the supervisor can bind. */
  readonly path: string
  /** Of the host's agent. */
  readonly agent: string
  readonly grant: AgentGrant
  readonly audit: AuditSink
  readonly fail: (error: unknown) => void
}

/** OpenSSH's bound. */
const MAX_MESSAGE = 256 * 1024
const MOST_CONNECTIONS = 32
/** Each request may become a record of the audit, which a flood must not fill. */
const [BURST, PER_SECOND] = [50, 10]

export function serveAgent({ path, agent, grant, audit, fail }: AgentOptions): { close(): void } {
  const pace = new TokenBucket(BURST, PER_SECOND)
  const serve = async (client: Socket): Promise<void> => {
    const host = new HostAgent(agent)
    client.once('close', () => host.close())
    const filter = new AgentFilter({ grant, audit, ask: message => host.ask(message) })
    try {
      for await (const message of messagesOf(client)) {
        await pace.wait()
        await sent(client, text(await filter.answer(message)))
      }
    } catch {
      // It broke the protocol, hung up, or nothing can be recorded.
    } finally {
      client.destroy()
      host.close()
    }
  }
  const listening = listenInside(path, { most: MOST_CONNECTIONS, serve, fail })
  return { close: () => listening.closeAll() }
}

/** Waits for a client that does not read, so that answers do not pile up. */
const sent = (client: Socket, bytes: Buffer): Promise<void> =>
  new Promise(resolve => client.write(bytes, () => resolve()))

/** A connection to the host's agent, made at the first question. */
class HostAgent {
  readonly #path: string
  #socket: Socket | undefined
  #messages: AsyncGenerator<Buffer, void, void> | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** One question at a time. */
  async ask(message: Buffer): Promise<Buffer> {
    if (this.#socket === undefined) {
      this.#socket = connect(this.#path)
      this.#socket.on('error', () => undefined)
      this.#messages = messagesOf(this.#socket)
    }
    this.#socket.write(text(message))
    const next = await this.#messages?.next()
    if (next?.value === undefined) throw new Error('the agent of the host does not answer')
    return next.value
  }

  close(): void {
    this.#socket?.destroy()
  }
}

/** Messages without their lengths. Throws at one that is empty or too long. */
export async function* messagesOf(socket: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  let held: Buffer = Buffer.alloc(0)
  for await (const bytes of socket) {
    held = held.length === 0 ? bytes : Buffer.concat([held, bytes])
    for (;;) {
      if (held.length < 4) break
      const length = held.readUInt32BE()
      if (length === 0 || length > MAX_MESSAGE) throw protocolError(`a message of ${length} bytes`)
      if (held.length < 4 + length) break
      yield held.subarray(4, 4 + length)
      held = held.subarray(4 + length)
    }
  }
}
