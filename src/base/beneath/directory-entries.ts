/**
 * Lists a directory, one buffer at a time. `readdir` of the runtime reads the whole directory into memory first, and a
 * sandbox may have filled it.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { systemCall } from '../kernel/system-call.ts'

const { O_RDONLY, O_DIRECTORY } = constants
const BUFFER = 32 * 1024
/** struct linux_dirent64 { u64 ino; i64 off; u16 length; u8 type; char name[] } */
const [LENGTH, TYPE, NAME] = [16, 18, 19]
const KINDS: Readonly<Record<number, EntryType>> = { 0: 'unknown', 4: 'directory', 8: 'file', 10: 'link' }
const DOT = 46
/** Allocating a buffer takes longer than listing a small directory. */
const spare: Buffer[] = []

/** `unknown`: some file systems return only the name. */
export type EntryType = 'directory' | 'file' | 'link' | 'other' | 'unknown'

export interface DirectoryEntry {
  /** Bytes: the name may be non-UTF-8. */
  readonly name: Buffer
  readonly type: EntryType
}

/** `dir` is any descriptor of a directory. The caller closes it. */
export function* directoryEntries(dir: number): Generator<DirectoryEntry, void, void> {
  const fd = openSync(`/proc/self/fd/${dir}`, O_RDONLY | O_DIRECTORY)
  const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER)
  try {
    const next = () => systemCall('getdents64', fd, buffer, buffer.length)
    for (let filled = next(); filled > 0; filled = next())
      for (let at = 0; at < filled; at += buffer.readUInt16LE(at + LENGTH)) {
        const name = buffer.subarray(at + NAME, buffer.indexOf(0, at + NAME))
        if (isDots(name)) continue
        yield { name: Buffer.from(name), type: KINDS[buffer.readUInt8(at + TYPE)] ?? 'other' }
      }
  } finally {
    closeSync(fd)
    spare.push(buffer)
  }
}

const isDots = (name: Buffer): boolean =>
  name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT))
