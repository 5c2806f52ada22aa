import { signal } from '../base/kernel/end-processes.ts'
import { startTimeOf } from '../base/kernel/processes.ts'

/** What is done to a sandbox as a whole, by the number of its first process or, where pen may not do that, in another way. */
export interface InitHandle {
  /** A path to its root directory, for as long as it runs. */
  readonly root: string
  /** Every process of it, at once. */
  readonly kill: () => void
}

/** The init takes every process of its namespace along. Its number may belong to somebody else by the time it is killed. */
export function initHandle(init: number): InitHandle {
  const startTime = startTimeOf(init)
  return {
    root: `/proc/${init}/root`,
    kill: () => {
      if (startTime === undefined || startTimeOf(init) !== startTime) return
      signal(init, 'SIGKILL')
    },
  }
}
