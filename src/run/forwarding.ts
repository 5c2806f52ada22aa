/** What forwards the ports of a sandbox, from the moment when somebody asks for one: few sandboxes need it. */
import { PenError } from '../base/error.ts'
import type { PortPair } from '../gateway/forward/forward.ts'
import type { ForwardedPort, ForwardedSandbox, Forwards, OpenForwards } from './forwards.ts'

export class Forwarding {
  readonly #sandbox: ForwardedSandbox
  #forwards: Promise<Forwards> | undefined
  #loaded: Forwards | undefined
  #isClosed: boolean = false

  constructor(sandbox: ForwardedSandbox) {
    this.#sandbox = sandbox
  }

  /** Now, whoever asked for them. */
  get ports(): readonly ForwardedPort[] {
    return this.#loaded?.ports ?? []
  }

  /** All of them, or none. Whoever asks ends them; the end of the sandbox does, too. */
  async open(pairs: readonly PortPair[]): Promise<OpenForwards> {
    if (this.#isClosed)
      throw new PenError('STATE', { what: 'the sandbox ends', hint: 'pen start starts it anew' })
    this.#forwards ??= import('./forwards.ts').then(({ Forwards }) => new Forwards(this.#sandbox))
    this.#loaded = await this.#forwards
    return await this.#loaded.open(pairs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const forwards = await this.#forwards?.catch(() => undefined)
    forwards?.close()
  }
}
