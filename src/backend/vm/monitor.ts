/**
 * QEMU's monitor (QMP), over a socket pair that only the supervisor and QEMU have. A guest that took over QEMU could
 * answer here, so an answer is bounded and never shown, and one that breaks the protocol ends the connection.
 */
import { sendDescriptors } from '../../base/kernel/pass-descriptors.ts'

/** QEMU's greeting and its answers have less than a kilobyte. */
const MAX_LINE = 65_536

interface Message {
  readonly return?: unknown
  readonly error?: { readonly desc?: unknown }
  readonly event?: unknown
}

type Waiting = PromiseWithResolvers<unknown>

export class Monitor {
  readonly #fd: number
  readonly #answers: Waiting[] = []
  readonly #events = new Map<string, Waiting>()
  readonly #decoder = new TextDecoder()
  #socket: Bun.Socket | undefined
  #rest = ''
  #closed: boolean = false

  /** Owns the descriptor. */
  constructor(fd: number) {
    this.#fd = fd
    const socket = {
      open: (native: Bun.Socket) => {
        this.#socket = native
        if (this.#closed) native.terminate()
      },
      data: (_: Bun.Socket, bytes: Uint8Array) => this.#receive(bytes),
      close: () => this.close(),
      error: () => this.close(),
    }
    Bun.connect({ fd, socket } as unknown as Bun.UnixSocketOptions<undefined>).catch(() => this.close())
  }

  /** One command at a time. A descriptor goes along with `getfd`. Rejects when QEMU refuses, or has ended. */
  async command(
    execute: string,
    words: Readonly<Record<string, unknown>> = {},
    fd?: number,
  ): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>()
    if (this.#closed) throw ended()
    this.#answers.push(answer)
    const text = `${JSON.stringify({ execute, arguments: words })}\n`
    sendDescriptors(this.#fd, { text, descriptors: fd === undefined ? [] : [fd] })
    return await answer.promise
  }

  /** Resolves at the next such event. Ask before the command that causes it. */
  async event(name: string): Promise<unknown> {
    if (this.#closed) throw ended()
    const known = this.#events.get(name) ?? Promise.withResolvers<unknown>()
    this.#events.set(name, known)
    return await known.promise
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#socket?.terminate()
    for (const waiting of [...this.#answers.splice(0), ...this.#events.values()]) waiting.reject(ended())
    this.#events.clear()
  }

  #receive(bytes: Uint8Array): void {
    const lines = `${this.#rest}${this.#decoder.decode(bytes, { stream: true })}`.split('\n')
    this.#rest = lines.pop() ?? ''
    try {
      for (const line of lines) this.#take(JSON.parse(line) as Message)
    } catch {
      this.close()
    }
    if (this.#rest.length > MAX_LINE) this.close()
  }

  #take(message: Message): void {
    if ('return' in message) this.#answers.shift()?.resolve(message.return)
    else if (message.error !== undefined)
      this.#answers.shift()?.reject(new Error(`QEMU refuses: ${String(message.error.desc)}`))
    else if (typeof message.event === 'string') {
      this.#events.get(message.event)?.resolve(undefined)
      this.#events.delete(message.event)
    }
  }
}

const ended = (): Error => new Error('QEMU has ended')
