import { signal } from '../base/kernel/end-processes.ts'
import { startTimeOf } from '../base/kernel/processes.ts'

/** Access to a sandbox as a whole: by the pid of its init or, where pen may not use that, in another way. */
export interface InitHandle {
  /** A path to the sandbox's root directory while it runs. */
  readonly root: string
  /** Kills every process of the sandbox at once. */
  readonly kill: () => void
}

/** Killing the init kills every process of its PID namespace. Checks the start time, because the pid may be reused. */
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
