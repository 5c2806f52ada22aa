/** The event listeners of a sandbox. A listener that throws does not affect the others, and its error is reported. */
import { checkValue, unknownKey } from './check-options.ts'

type Listener = (...values: never[]) => unknown

/** @internal */
export class EventListeners<Events extends Record<keyof Events, unknown[]>> {
  readonly #names: readonly string[]
  readonly #listeners = new Map<string, Set<Listener>>()

  constructor(names: readonly (keyof Events & string)[]) {
    this.#names = names
  }

  add(event: keyof Events & string, listener: Listener): void {
    if (!this.#names.includes(event)) throw unknownKey('unknown event', String(event), this.#names)
    checkValue('box.on()', 'the listener', listener, 'function')
    this.#listeners.set(event, (this.#listeners.get(event) ?? new Set()).add(listener))
  }

  remove(event: keyof Events & string, listener: Listener): void {
    this.#listeners.get(event)?.delete(listener)
  }

  emit<E extends keyof Events & string>(event: E, ...values: Events[E]): void {
    this.#call(event, values)
  }

  #call(event: string, values: readonly unknown[]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])])
      try {
        const returned = listener(...(values as never[]))
        if (returned instanceof Promise) returned.catch(error => this.#fail(event, error))
      } catch (error) {
        this.#fail(event, error)
      }
  }

  /** Like Node's emitters: goes to the `error` listeners, or is thrown as an uncaught exception. */
  #fail(event: string, error: unknown): void {
    if (event !== 'error' && (this.#listeners.get('error')?.size ?? 0) > 0) this.#call('error', [error])
    else
      queueMicrotask(() => {
        throw error
      })
  }
}
