/** Waits for processes, and changes this one. */
import { close, isReady, POLLIN } from './descriptor.ts'
import { cString, succeeded, tryCall } from './system-call.ts'

/** Waits until a process has ended, at most `millis`. It may be any process, not only a child. */
export function awaitEnd(pid: number, millis: number): void {
  const fd = tryCall('pidfd_open', pid, 0)
  if (fd < 0) return
  isReady(fd, POLLIN, millis)
  close(fd)
}

const RLIMIT_CORE = 4

/**
 * No core dumps of this process and its children. The limit is one byte, not zero: when `core_pattern` is a pipe, the
 * kernel ignores every limit except this value. The call fails only when a lower limit is in force.
 */
export function leaveNoCore(): void {
  tryCall('prlimit64', 0, RLIMIT_CORE, new BigUint64Array([1n, 1n]), null)
}

const PR_SET_PDEATHSIG = 1

/** The kernel sends it to this process when its parent dies. */
export const signalOnParentDeath = (signal: number): void =>
  void tryCall('prctl', PR_SET_PDEATHSIG, signal, 0, 0, 0)

/** `struct sigaction` of the kernel: handler, flags, restorer and mask. All zero is the default action. */
const DEFAULT_ACTION = new Uint8Array(32)
const SIGNAL_SET_BYTES = 8

export function restoreSignal(signal: number): void {
  tryCall('rt_sigaction', signal, DEFAULT_ACTION, null, SIGNAL_SET_BYTES)
}

const CLONE_FS = 0x200
const CLONE_NEWNS = 0x20000

const EINVAL = 22
const TRIES = 10

/**
 * Moves this thread into a mount namespace. The kernel refuses that while another thread shares its root and current directory. The
 * runtime may start such a thread between the two calls.
 */
export function joinMounts(namespace: number): void {
  for (let left = TRIES; ; left--) {
    succeeded('have a root directory of its own', tryCall('unshare', CLONE_FS))
    const answer = tryCall('setns', namespace, CLONE_NEWNS)
    if (answer === -EINVAL && left > 1) continue
    succeeded('enter the mounts', answer)
    return
  }
}

/**
 * Moves this thread into another mount namespace. Other threads of the runtime keep their namespace, root and directory.
 * `root` becomes the root and current directory: paths do not start at the namespace's own root, which may be hostile.
 */
export function enterMounts(namespace: number, root: number): void {
  joinMounts(namespace)
  succeeded('enter the root directory', tryCall('fchdir', root))
  succeeded('change the root directory', tryCall('chroot', cString('.')))
}
