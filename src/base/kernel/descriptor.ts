/** Open descriptors: made, copied, waited for and closed. None is inherited by another program by accident. */
import { PenError } from '../error.ts'
import { cString, succeeded, systemCall, tryCall } from './system-call.ts'

const AT_FDCWD = -100
export const O_CLOEXEC = 0o2000000
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

/** Without Node's checks and its event loop: for namespaces, which are no files to read. */
export const openPath = (path: string): number =>
  succeeded(`open ${path}`, tryCall('openat', AT_FDCWD, cString(path), O_CLOEXEC))

export const copyOf = (fd: number): number => systemCall('fcntl', fd, F_DUPFD_CLOEXEC, 0)

/** Makes `number` another name of the open file `fd`. */
export function putInPlaceOf(fd: number, number: number): void {
  systemCall('dup3', fd, number, 0)
}

/** Never fails: a descriptor that was closed before is closed. */
export function close(fd: number): void {
  tryCall('close', fd)
}

export const POLLIN = 1
const POLLOUT = 4

/** Whether the descriptor is ready now, or becomes so within `millis`. Nothing else of this process runs meanwhile. */
export function isReady(fd: number, event: number, millis: number): boolean {
  const time = new BigInt64Array([0n, BigInt(millis * 1e6)])
  return tryCall('ppoll', Int32Array.of(fd, event), 1, time, null) > 0
}

/** Whether a write of one line would not block. */
export const takesNow = (fd: number): boolean => isReady(fd, POLLOUT, 0)
