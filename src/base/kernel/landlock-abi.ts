import { CallFailed } from './call-failed.ts'
import { systemCall } from './system-call.ts'

const VERSION = 1

/** The version of Landlock that the running kernel has, or 0. Asked of the kernel itself: one system call. */
export function landlockAbi(): number {
  try {
    return systemCall('landlock_create_ruleset', null, 0, VERSION)
  } catch (error) {
    if (error instanceof CallFailed) return 0
    throw error
  }
}
