import { SystemCallError, systemCall } from './system-call.ts'

const LANDLOCK_CREATE_RULESET = 444
const VERSION = 1

/** The version of Landlock that the running kernel has, or 0. Asked of the kernel itself: one system call. */
export function landlockAbi(): number {
  try {
    return systemCall('landlock_create_ruleset', LANDLOCK_CREATE_RULESET, null, 0, VERSION)
  } catch (error) {
    if (error instanceof SystemCallError) return 0
    throw error
  }
}
