/** Makes, names, copies, polls and closes descriptors. All are close-on-exec. */
import { PenError } from '../error.ts'
import { cString, succeeded, systemCall, tryCall } from './system-call.ts'

/** For paths that start at the current directory, or are absolute. */
export const AT_FDCWD = -100
const AT_SYMLINK_FOLLOW = 0x400
export const O_CLOEXEC = 0o2000000
export const O_PATH = 0o10000000
const F_DUPFD_CLOEXEC = 1030
const MFD_CLOEXEC = 1

/** [read end, write end] */
export function pipe(): readonly [number, number] {
  const ends = new Int32Array(2)
  if (tryCall('pipe2', ends, O_CLOEXEC) < 0)
    throw new PenError('LIMIT', {
      what: 'pen may not open as many files as it needs',
      hint: 'raise the limit of open files: ulimit -n 1024',
    })
  return [ends[0] ?? -1, ends[1] ?? -1]
}

/** A file in memory, without a name on any disk. */
export const memoryFile = (): number => systemCall('memfd_create', cString('pen'), MFD_CLOEXEC)

/** Opens without Node's checks and event loop: for namespaces, which are not readable files. */
export const openPath = (path: string): number =>
  succeeded(`open ${path}`, tryCall('openat', AT_FDCWD, cString(path), O_CLOEXEC))

/** Links an unnamed open file into a directory. */
export function nameFile(fd: number, dir: number, name: string): void {
  systemCall('linkat', AT_FDCWD, cString(`/proc/self/fd/${fd}`), dir, cString(name), AT_SYMLINK_FOLLOW)
}

export const copyOf = (fd: number): number => systemCall('fcntl', fd, F_DUPFD_CLOEXEC, 0)

/** Makes descriptor `number` refer to the open file of `fd`, as `dup2` does. */
export function putInPlaceOf(fd: number, number: number): void {
  systemCall('dup3', fd, number, 0)
}

/** Never fails, also when the descriptor is closed already. */
export function close(fd: number): void {
  tryCall('close', fd)
}

export const POLLIN = 1
const POLLOUT = 4

/** Whether the descriptor is ready, or becomes ready within `millis`. Blocks this process until then. */
export function isReady(fd: number, event: number, millis: number): boolean {
  const time = new BigInt64Array([0n, BigInt(millis * 1e6)])
  return tryCall('ppoll', Int32Array.of(fd, event), 1, time, null) > 0
}

/** Whether a write of one line would not block. */
export const takesNow = (fd: number): boolean => isReady(fd, POLLOUT, 0)
