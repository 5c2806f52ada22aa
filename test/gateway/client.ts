/** A program inside the sandbox, at the level of bytes. */
import { connect, type Socket } from 'node:net'
import { Stopwatch } from '../stopwatch.ts'
import { until } from '../until.ts'

export class Client {
  readonly socket: Socket
  text = ''
  ended: boolean = false
  closed: boolean = false
  error: string | undefined
  #woken: () => void = () => undefined

  constructor(port: number, socket?: Socket) {
    this.socket = socket ?? connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true })
    this.socket.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1')
      this.#woken()
    })
    this.socket.on('end', () => {
      this.ended = true
      this.#woken()
    })
    this.socket.on('error', error => {
      this.error = 'code' in error ? String(error.code) : error.message
    })
    this.socket.on('close', () => {
      this.closed = true
      this.#woken()
    })
  }

  get wasReset(): boolean {
    return this.error === 'ECONNRESET'
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    return this
  }

  /** Waits until the condition holds, the other side closes, or the time is over. */
  async until(holds: () => boolean, ms = 2000): Promise<this> {
    const watch = new Stopwatch()
    while (!holds() && !this.ended && !this.closed && watch.ms < ms)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, 20)
        this.#woken = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    return this
  }

  heard(text: string): Promise<this> {
    return this.until(() => this.text.includes(text))
  }

  /** Waits until the gateway closes it. */
  over(ms = 2000): Promise<this> {
    return this.until(() => false, ms)
  }
}

export const eventually = (holds: () => boolean, ms = 2000): Promise<number> => until(holds, ms)
