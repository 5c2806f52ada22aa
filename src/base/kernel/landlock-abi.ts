import { CallFailed } from './call-failed.ts'
import { systemCall } from './system-call.ts'

const VERSION = 1

/** The Landlock version of the running kernel, or 0. One system call. */
export function landlockAbi(): number {
  try {
    return systemCall('landlock_create_ruleset', null, 0, VERSION)
  } catch (error) {
    if (error instanceof CallFailed) return 0
    throw error
  }
}
