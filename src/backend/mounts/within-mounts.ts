/**
 * This thread in the mount namespace of a sandbox, and back. For the host's root alone, which needs no user namespace for it, and
 * only while nothing of the sandbox runs: what is done there is done at once, without a process of its own that would have to start.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { cString, systemCall } from '../process/libc.ts'
import { O_PATH } from './beneath-root.ts'

const CALL =
  process.arch === 'arm64'
    ? { unshare: 97, setns: 268, fchdir: 50, chroot: 51 }
    : { unshare: 272, setns: 308, fchdir: 81, chroot: 161 }
const CLONE_FS = 0x200
const CLONE_NEWNS = 0x20000

/** The root directory stays the host's, so that no path leads through the sandbox's files. */
export function withinMounts<T>(mounts: number, work: () => T): T {
  const open = [openSync('/proc/thread-self/ns/mnt', 'r'), directory('/'), directory('.')] as const
  const [home, root, cwd] = open
  const enter = (namespace: number, at: number): void => {
    systemCall('setns', CALL.setns, namespace, CLONE_NEWNS)
    systemCall('fchdir', CALL.fchdir, root)
    systemCall('chroot', CALL.chroot, cString('.'))
    systemCall('fchdir', CALL.fchdir, at)
  }
  try {
    // The runtime's other threads keep their root and their directory.
    systemCall('unshare', CALL.unshare, CLONE_FS)
    try {
      enter(mounts, root)
      return work()
    } finally {
      // Should this fail, every path of this process leads through the sandbox's mounts: the error ends it.
      enter(home, cwd)
    }
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

const directory = (path: string): number => openSync(path, O_PATH | constants.O_DIRECTORY)
