/**
 * A supervisor that is started before it is known whether there is need of one: it waits for its order while the sandbox's state is
 * looked at, and without an order it ends as if it had never been.
 */
import { closeSync, writeSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { pipe } from '../base/kernel/descriptor.ts'
import { ownProgram } from '../base/own-program.ts'
import { startProgram } from '../base/start-program.ts'
import { SUPERVISE_MODE, type SupervisorInput } from '../control/supervisor-order.ts'

let spare: SpareSupervisor | undefined

/** For a program that will most likely want one. Where it does not, it ends with the program at the latest. */
export function beginSpare(): void {
  spare ??= new SpareSupervisor()
}

/** The one that was begun, or a new one. */
export function takeSpare(): SpareSupervisor {
  const begun = spare ?? new SpareSupervisor()
  spare = undefined
  return begun
}

export class SpareSupervisor {
  /** What it says of the start. */
  readonly report: number
  #order: number | undefined

  constructor() {
    const [orderEnd, order] = pipe()
    const [report, reportEnd] = pipe()
    try {
      const child = startProgram([...ownProgram(), SUPERVISE_MODE], {
        stdio: [orderEnd, 'ignore', 'ignore', reportEnd],
        // A session of its own: no terminal that closes, and no Ctrl-C, is meant for it.
        detached: true,
        env: { ...process.env },
      } as Parameters<typeof startProgram>[1])
      child.unref()
    } finally {
      for (const fd of [orderEnd, reportEnd]) closeSync(fd)
    }
    this.#order = order
    this.report = report
  }

  /** From now on it is the supervisor, or says why not. */
  assign(order: SupervisorInput): void {
    const fd = this.#order
    if (fd === undefined) return
    const bytes = Buffer.from(JSON.stringify(order))
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
    } catch (error) {
      // It is gone: its report ends without the word for which it is read.
      if (errnoOf(error) !== 'EPIPE') throw error
    }
    this.#order = undefined
    closeSync(fd)
  }

  /** Nothing happens to one that has its order. */
  dismiss(): void {
    if (this.#order === undefined) return
    closeSync(this.#order)
    closeSync(this.report)
    this.#order = undefined
  }
}
