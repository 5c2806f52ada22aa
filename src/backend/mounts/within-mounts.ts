/**
 * Moves this thread into the mount namespace of a sandbox, and back. Only the host's root may do this without a user
 * namespace. It is used only while nothing of the sandbox runs, and saves the start of a process.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { enterMounts } from '../../base/kernel/enter-mounts.ts'
import { O_PATH } from '../../base/kernel/file.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'

/** The root directory stays the host's, so no path leads through the sandbox's files. */
export function withinMounts<T>(mounts: number, work: () => T): T {
  const open = [openSync('/proc/thread-self/ns/mnt', 'r'), directory('/'), directory('.')] as const
  const [home, root, cwd] = open
  try {
    try {
      enterMounts(mounts, root)
      return work()
    } finally {
      // If this fails, every path of this process leads through the sandbox's mounts. The error then ends the process.
      enterMounts(home, root)
      succeeded('go back', tryCall('fchdir', cwd))
    }
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

const directory = (path: string): number => openSync(path, O_PATH | constants.O_DIRECTORY)
