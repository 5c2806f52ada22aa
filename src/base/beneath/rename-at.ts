/** Renames and stamps names in an open directory, by system calls that the runtime does not have. */
import { systemCall } from '../kernel/system-call.ts'

const NOREPLACE = 1
const EXCHANGE = 2
const SYMLINK_NOFOLLOW = 0x100
const UTIME_OMIT = 0x3fff_fffen

type Name = string | Buffer

/** Fails with EEXIST when something stands at `to`. */
export const renameToFree = (dir: number, from: Name, to: Name): void => renameAt(dir, from, to, NOREPLACE)

/** Each name has what the other had, at one moment. */
export const exchange = (dir: number, one: Name, other: Name): void => renameAt(dir, one, other, EXCHANGE)

function renameAt(dir: number, from: Name, to: Name, flags: number): void {
  systemCall('renameat2', dir, cName(from), dir, cName(to), flags)
}

/** Sets the modification time of a name, itself when it is a link. */
export function setModified(dir: number, name: Name, mtimeNs: bigint): void {
  const second = 1_000_000_000n
  const part = ((mtimeNs % second) + second) % second
  const times = new BigInt64Array([0n, UTIME_OMIT, (mtimeNs - part) / second, part])
  systemCall('utimensat', dir, cName(name), times, SYMLINK_NOFOLLOW)
}

const cName = (name: Name): Uint8Array => Buffer.concat([Buffer.from(name), Buffer.of(0)])
