/**
 * Take a resource, push its undo. When the work ends, well or badly, everything is given back newest first,
 * because later resources stand on earlier ones. One undo that fails never keeps the others from running.
 */

export interface UndoFailure {
  readonly label: string
  readonly error: unknown
}

type Undo = () => void | Promise<void>

export class UndoStack {
  readonly #entries: { readonly label: string; readonly undo: Undo }[] = []
  #unwinding: Promise<readonly UndoFailure[]> | undefined

  /** Returns a function that takes the undo off again, for a resource whose owner changed. */
  push(label: string, undo: Undo): () => void {
    const entry = { label, undo }
    this.#entries.push(entry)
    return () => {
      const index = this.#entries.indexOf(entry)
      if (index >= 0) this.#entries.splice(index, 1)
    }
  }

  get size(): number {
    return this.#entries.length
  }

  /**
   * Runs every undo once and reports those that failed. Undos up to the first asynchronous one have run when this
   * returns, so a stack of synchronous undos is safe to unwind in a last moment. A call during an unwinding waits
   * for the same one; an undo pushed meanwhile (a signal arrived while resources were being taken) is run by it too.
   */
  unwind(): Promise<readonly UndoFailure[]> {
    if (this.#unwinding !== undefined) return this.#unwinding
    const failures: UndoFailure[] = []
    const pending = this.#drain(failures)
    if (pending === undefined) return Promise.resolve(failures)
    this.#unwinding = pending.then(() => {
      this.#unwinding = undefined
      return failures
    })
    return this.#unwinding
  }

  #drain(failures: UndoFailure[]): Promise<void> | undefined {
    for (let entry = this.#entries.pop(); entry !== undefined; entry = this.#entries.pop()) {
      const { label, undo } = entry
      const failed = (error: unknown): void => {
        failures.push({ label, error })
      }
      try {
        const result = undo()
        if (result instanceof Promise) return result.catch(failed).then(() => this.#drain(failures))
      } catch (error) {
        failed(error)
      }
    }
    return undefined
  }
}
