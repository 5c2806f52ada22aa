/** Files by descriptor. */
import { AT_FDCWD, O_CLOEXEC } from './descriptor.ts'
import { cString, systemCall } from './system-call.ts'

export const O_PATH = 0o10000000

/** `resolve` takes RESOLVE_ flags. */
export function openat2(dir: number, path: string, flags: number, resolve: number): number {
  // struct open_how { u64 flags, mode, resolve }
  const how = new BigUint64Array([BigInt(flags | O_CLOEXEC), 0n, BigInt(resolve)])
  return systemCall('openat2', dir, cString(path), how, how.byteLength)
}

const AT_SYMLINK_FOLLOW = 0x400

/** Links an unnamed open file into a directory. */
export function nameFile(fd: number, dir: number, name: string): void {
  systemCall('linkat', AT_FDCWD, cString(`/proc/self/fd/${fd}`), dir, cString(name), AT_SYMLINK_FOLLOW)
}

/** Reads the next entries of an open directory. Returns how many bytes of the buffer they fill; 0 at the end. */
export const getdents = (fd: number, buffer: Uint8Array): number =>
  systemCall('getdents64', fd, buffer, buffer.length)
