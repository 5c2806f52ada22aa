/** What the running kernel is and offers. */
import { CallFailed } from './call-failed.ts'
import { readKernelFile } from './kernel-file.ts'
import { systemCall } from './system-call.ts'

/** `uname -r` without node:os, which takes longer to load than a policy takes to read. */
export function kernelRelease(): string {
  try {
    return readKernelFile('/proc/sys/kernel/osrelease').trim()
  } catch {
    // Not Linux, or /proc is hidden.
    return process.getBuiltinModule('node:os').release()
  }
}

const VERSION = 1

/** The Landlock version, or 0. One system call. */
export function landlockAbi(): number {
  try {
    return systemCall('landlock_create_ruleset', null, 0, VERSION)
  } catch (error) {
    if (error instanceof CallFailed) return 0
    throw error
  }
}
