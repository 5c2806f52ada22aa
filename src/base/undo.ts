/**
 * Take a resource, push its undo. When the work ends, well or badly, all undos run newest first, because later
 * resources depend on earlier ones. An undo that fails is reported, and the others still run.
 */
import { PenError, showPlace } from './error.ts'
import { printable } from './printable.ts'

/** A resource that stays behind. */
export interface CleanupFailure {
  /** What could not be cleaned up: the label of its undo. */
  readonly what: string
  readonly why: string
  readonly fix: string
}

type Undo = () => void | Promise<void>
type Report = (failure: CleanupFailure) => void

/** One list per process: a pen process runs at most one sandbox, and its user reads one stderr. */
const reports = new Set<Report>([printFailure])

/** Also reports cleanup failures here, until the returned function is called. */
export function onCleanupFailure(report: Report): () => void {
  reports.add(report)
  return () => void reports.delete(report)
}

export class UndoStack {
  readonly #entries: { readonly label: string; readonly undo: Undo }[] = []
  #unwinding: Promise<void> | undefined

  /**
   * The label says what stays behind when the undo fails: `could not clean up <label>`. Returns a function that removes
   * the undo, for a resource that gets another owner.
   */
  push(label: string, undo: Undo): () => void {
    const entry = { label, undo }
    this.#entries.push(entry)
    return () => {
      const index = this.#entries.indexOf(entry)
      if (index >= 0) this.#entries.splice(index, 1)
    }
  }

  /** For a resource that all other undos may need, such as the audit that records their failures. */
  pushToRunLast(label: string, undo: Undo): void {
    this.#entries.unshift({ label, undo })
  }

  /**
   * Runs every undo once and reports those that fail. Undos up to the first asynchronous one have run when this
   * returns, so a stack of synchronous undos can be unwound in an exit handler. A second call waits for the first.
   * An undo that is pushed while it runs (a signal arrived during the setup) runs too.
   */
  unwind(): Promise<void> {
    this.#unwinding ??= this.#drain().finally(() => {
      this.#unwinding = undefined
    })
    return this.#unwinding
  }

  async #drain(): Promise<void> {
    for (let entry = this.#entries.pop(); entry !== undefined; entry = this.#entries.pop())
      try {
        const result = entry.undo()
        if (result instanceof Promise) await result
      } catch (error) {
        reportCleanupFailure(entry.label, error)
      }
  }
}

/** For a cleanup that has no undo stack. */
export function reportCleanupFailure(what: string, error: unknown): void {
  const at = error instanceof PenError && error.at !== undefined ? ` (${showPlace(error.at)})` : ''
  const failure: CleanupFailure = {
    what,
    why: `${error instanceof Error ? error.message : String(error)}${at}`,
    fix: (error instanceof PenError ? error.hint : undefined) ?? 'pen gc',
  }
  for (const report of reports) {
    try {
      report(failure)
    } catch {
      // The next report still runs: an audit on a full disk must not hide the line on stderr.
    }
  }
}

function printFailure({ what, why, fix }: CleanupFailure): void {
  process.stderr.write(`pen: could not clean up ${what}: ${printable(why, 1024)}\n  fix: ${printable(fix)}\n`)
}
