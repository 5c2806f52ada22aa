/** A lease for reading: the kernel grants it only while nothing has the file open for writing. A mapping counts, too. */
import { closeSync, constants, openSync } from 'node:fs'
import { systemCall, tryCall } from './system-call.ts'

const [F_SETSIG, F_SETLEASE, F_RDLCK] = [10, 1024, 0]
/** Ignored by default. */
const SIGURG = 23
const EAGAIN = -11

/** Minus the errno when there is none. Who opens the file for writing waits until `fd` is closed. */
export function takeReadLease(fd: number): number {
  // That open causes a signal, by default one that ends pen.
  systemCall('fcntl', fd, F_SETSIG, SIGURG)
  return tryCall('fcntl', fd, F_SETLEASE, F_RDLCK)
}

/** `act` judges what stands still. False when something has the file open for writing. Not every file system has leases. */
export function whileUnwritten(path: string, act: () => boolean): boolean {
  const fd = openSync(path, constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    return takeReadLease(fd) !== EAGAIN && act()
  } finally {
    closeSync(fd)
  }
}
