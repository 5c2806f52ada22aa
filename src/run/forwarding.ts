/** Forwards ports of a sandbox. Its modules are loaded at the first request, because few sandboxes need it. */
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

  /** All ports that are forwarded now. */
  get ports(): readonly ForwardedPort[] {
    return this.#loaded?.ports ?? []
  }

  /** Opens all ports or none. The caller closes them; the end of the sandbox closes them too. */
  async open(pairs: readonly PortPair[]): Promise<OpenForwards> {
    if (this.#isClosed)
      throw new PenError('STATE', { what: 'the sandbox is ending', hint: 'start it again: pen start' })
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
