/**
 * Connections of an SSH client to servers in the sandbox (`ssh -L`, `ssh -D`). Each port is forwarded as by `pen forward`, for as
 * long as the client is connected. Nothing else is reached: other hosts are for programs inside, by the policy.
 */
import { connect, type Socket } from 'node:net'
import type { ServerChannel } from 'ssh2'
import { sendRequest } from '../control/client.ts'
import { takeValue } from '../control/messages.ts'
import type { ControlSocket } from '../control/socket.ts'
import type { OpenForwards } from '../run/forwards.ts'

const LOOPBACK = ['localhost', '127.0.0.1', '::1', '0.0.0.0', '']

export class Tunnels {
  readonly #stateDir: string
  readonly #ports = new Map<number, Promise<number>>()
  readonly #open = new Set<ControlSocket>()

  constructor(stateDir: string) {
    this.#stateDir = stateDir
  }

  open(host: string, guest: number, accept: () => ServerChannel, reject: () => void): void {
    const port = LOOPBACK.includes(host)
      ? this.#forward(guest)
      : Promise.reject(new Error('not in the sandbox'))
    port
      .then(port => {
        const socket = connect({ host: '127.0.0.1', port })
        socket.once('error', reject)
        socket.once('connect', () => {
          socket.off('error', reject)
          join(accept(), socket)
        })
      })
      .catch(reject)
  }

  close(): void {
    for (const socket of this.#open) socket.destroy()
  }

  /** The port of the host. */
  #forward(guest: number): Promise<number> {
    const known = this.#ports.get(guest)
    if (known !== undefined) return known
    const port = this.#ask(guest)
    this.#ports.set(guest, port)
    port.catch(() => this.#ports.delete(guest))
    return port
  }

  async #ask(guest: number): Promise<number> {
    const asked = await sendRequest(this.#stateDir, { want: 'forward', ports: [{ guest, host: 0 } as never] })
    if (asked === undefined) throw new Error('the sandbox stopped')
    const { ports } = takeValue(asked.answer) as Pick<OpenForwards, 'ports'>
    this.#open.add(asked.socket)
    asked.socket.attach({ data: () => undefined, closed: () => this.#ports.delete(guest) })
    return ports[0]?.host ?? 0
  }
}

function join(channel: ServerChannel, socket: Socket): void {
  channel.on('error', () => socket.destroy())
  socket.on('error', () => channel.close())
  channel.on('close', () => socket.destroy())
  channel.pipe(socket).pipe(channel)
}
