/** The sandbox of the tools. The first tool call starts it. It is started again after it ends, and when the project changes. */
import { printable } from '../base/printable.ts'
import { Sandbox, type StartOptions } from '../library/sandbox.ts'

export class LazySandbox {
  readonly #choose: () => Promise<StartOptions>
  #chosen: Promise<StartOptions> | undefined
  #project: string | undefined
  #starting: Promise<Sandbox> | undefined

  /** `choose` is called before the first start, and again after `reconsider()`. */
  constructor(choose: () => Promise<StartOptions>) {
    this.#choose = choose
  }

  async get(): Promise<Sandbox> {
    this.#chosen ??= this.#choose()
    const options = await this.#chosen.catch((error: unknown) => {
      this.#chosen = undefined
      throw error
    })
    if (this.#project !== options.project) await this.end()
    this.#project = options.project
    this.#starting ??= this.#start(options)
    return await this.#starting
  }

  /** The client's roots have changed. */
  reconsider(): void {
    this.#chosen = undefined
  }

  /** The sandbox has ended. */
  forget(): void {
    this.#starting = undefined
  }

  async end(): Promise<void> {
    const starting = this.#starting
    this.#starting = undefined
    const box = await starting?.catch(() => undefined)
    await box?.[Symbol.asyncDispose]()
  }

  #start(options: StartOptions): Promise<Sandbox> {
    const starting = Sandbox.start(options).then(box => {
      // Clients log the stderr of a server: what is weaker here, and which gaps were accepted.
      for (const note of box.notes) process.stderr.write(`pen: ${printable(note, 1024)}\n`)
      return box
    })
    const forget = (): void => {
      if (this.#starting === starting) this.#starting = undefined
    }
    starting.then(box => box.on('end', forget), forget)
    return starting
  }
}
