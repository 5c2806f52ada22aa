/** A port of the sandbox that programs on this machine can reach until it is closed. */
import type { PortPair } from '../gateway/forward/forward.ts'
import type { OpenForwards } from '../run/forwards.ts'
import { checkOptions, usage } from './check-options.ts'
import { type SupervisorConnection, sendRequest } from './supervisor-connection.ts'

export interface ForwardOptions {
  /** The port on this machine. Default: a free one. A port that is in use is an error. */
  readonly hostPort?: number | undefined
}

export class ForwardedPort implements AsyncDisposable {
  /** The address on this machine. The server behind it is in the sandbox and not trusted. */
  readonly address = '127.0.0.1'
  readonly port: number
  readonly #connection: SupervisorConnection
  readonly #closed: Promise<void>

  private constructor(port: number, connection: SupervisorConnection) {
    this.port = port
    this.#connection = connection
    this.#closed = connection.closed()
    connection.unref()
  }

  static async open(stateDir: string, guest: number, options: ForwardOptions): Promise<ForwardedPort> {
    checkOptions('box.forward()', options, { hostPort: 'number' })
    const host = options.hostPort === undefined ? 0 : checked(options.hostPort)
    const pair: PortPair = { guest: checked(guest), host }
    const { value, socket } = await sendRequest(stateDir, { want: 'forward', ports: [pair] })
    const { ports } = value as Pick<OpenForwards, 'ports'>
    return new ForwardedPort(ports[0]?.host ?? 0, socket)
  }

  /** When this returns, the port is closed and its connections have ended. */
  async close(): Promise<void> {
    this.#connection.end()
    await this.#closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

function checked(port: number): PortPair['guest'] {
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port as PortPair['guest']
  throw usage(`${String(port)} is not a port`, 'expected a number from 1 to 65535')
}
