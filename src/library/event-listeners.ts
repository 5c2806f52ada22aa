/** The event listeners of a sandbox. A listener that throws does not affect the others, and its error is reported. */
import { checkValue, unknownKey } from './check-options.ts'

type Listener = (...values: never[]) => unknown

/** @internal */
export class EventListeners<Events extends { error: [error: unknown] } & { [K in keyof Events]: unknown[] }> {
  readonly #names: readonly (keyof Events & string)[]
  readonly #listeners = new Map<keyof Events, Set<Listener>>()

  constructor(names: readonly (keyof Events & string)[]) {
    this.#names = names
  }

  add<E extends keyof Events & string>(
    event: E,
    listener: (...values: Events[E]) => void | Promise<void>,
  ): void {
    if (!this.#names.includes(event)) throw unknownKey('unknown event', String(event), this.#names)
    checkValue('box.on()', 'the listener', listener, 'function')
    this.#listeners.set(event, (this.#listeners.get(event) ?? new Set()).add(listener))
  }

  remove<E extends keyof Events & string>(
    event: E,
    listener: (...values: Events[E]) => void | Promise<void>,
  ): void {
    this.#listeners.get(event)?.delete(listener)
  }

  emit<E extends keyof Events & string>(event: E, ...values: Events[E]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])])
      try {
        const returned = (listener as (...given: Events[E]) => unknown)(...values)
        if (returned instanceof Promise) returned.catch(error => this.#fail(event, error))
      } catch (error) {
        this.#fail(event, error)
      }
  }

  /** Like Node's emitters: goes to the `error` listeners, or is thrown as an uncaught exception. */
  #fail(event: keyof Events & string, error: unknown): void {
    if (event !== 'error' && (this.#listeners.get('error')?.size ?? 0) > 0)
      this.emit('error' as keyof Events & string, ...([error] as unknown as Events[keyof Events & string]))
    else
      queueMicrotask(() => {
        throw error
      })
  }
}
