/**
 * This thread in the mount namespace of a sandbox, and back. For the host's root alone, which needs no user namespace for it, and
 * only while nothing of the sandbox runs: what is done there is done at once, without a process of its own that would have to start.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { enterMounts } from '../../base/kernel/enter-mounts.ts'
import { O_PATH } from '../../base/kernel/file.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'

/** The root directory stays the host's, so that no path leads through the sandbox's files. */
export function withinMounts<T>(mounts: number, work: () => T): T {
  const open = [openSync('/proc/thread-self/ns/mnt', 'r'), directory('/'), directory('.')] as const
  const [home, root, cwd] = open
  try {
    try {
      enterMounts(mounts, root)
      return work()
    } finally {
      // Should this fail, every path of this process leads through the sandbox's mounts: the error ends it.
      enterMounts(home, root)
      succeeded('go back', tryCall('fchdir', cwd))
    }
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

const directory = (path: string): number => openSync(path, O_PATH | constants.O_DIRECTORY)
