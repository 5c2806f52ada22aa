/**
 * A supervisor process that is started early, before pen knows whether it needs one. It waits for its input while pen reads the state
 * of the sandbox. Without input it ends and changes nothing.
 */
import { closeSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { pipe } from '../base/kernel/descriptor.ts'
import { ownProgram } from '../base/own-program.ts'
import { startProgram } from '../base/start-program.ts'
import { SUPERVISE_MODE, type SupervisorInput, writeJson } from '../control/supervisor-order.ts'

let spare: SpareSupervisor | undefined

/** Starts one early, for a verb that will probably need it. An unused one ends with this process. */
export function beginSpare(): void {
  spare ??= new SpareSupervisor()
}

/** The one that was started early, or a new one. */
export function takeSpare(): SpareSupervisor {
  const begun = spare ?? new SpareSupervisor()
  spare = undefined
  return begun
}

export class SpareSupervisor {
  /** The descriptor of its reports. */
  readonly report: number
  #order: number | undefined

  constructor() {
    const [orderEnd, order] = pipe()
    const [report, reportEnd] = pipe()
    try {
      const child = startProgram([...ownProgram(), SUPERVISE_MODE], {
        stdio: [orderEnd, 'ignore', 'ignore', reportEnd],
        // Its own session: a closing terminal and Ctrl-C do not reach it.
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

  /** Makes it the supervisor. Its reports say whether that succeeds. */
  assign(order: SupervisorInput): void {
    const fd = this.#order
    if (fd === undefined) return
    try {
      writeJson(fd, order)
    } catch (error) {
      // It has died. Its report then ends without `ready`.
      if (errnoOf(error) !== 'EPIPE') throw error
    }
    this.#order = undefined
    closeSync(fd)
  }

  /** Does nothing to a supervisor that has its order. */
  dismiss(): void {
    if (this.#order === undefined) return
    closeSync(this.#order)
    closeSync(this.report)
    this.#order = undefined
  }
}
