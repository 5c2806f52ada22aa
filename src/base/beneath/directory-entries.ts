/**
 * What is in a directory, as the kernel tells it, a buffer at a time. The runtime's own reader takes a whole directory into
 * memory before it gives the first name away, and a sandbox may have filled it.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { getdents } from '../kernel/file.ts'

const { O_RDONLY, O_DIRECTORY } = constants
const BUFFER = 32 * 1024
/** struct linux_dirent64 { u64 ino; i64 off; u16 length; u8 type; char name[] } */
const [LENGTH, TYPE, NAME] = [16, 18, 19]
const KINDS: Readonly<Record<number, EntryType>> = { 0: 'unknown', 4: 'directory', 8: 'file', 10: 'link' }
const DOT = 46

/** Some file systems tell no more than the name: unknown. */
export type EntryType = 'directory' | 'file' | 'link' | 'other' | 'unknown'

export interface DirectoryEntry {
  /** As the kernel has it: it need not be text. */
  readonly name: Buffer
  readonly type: EntryType
}

/** `dir` is any descriptor of a directory; it stays the caller's. */
export function* directoryEntries(dir: number): Generator<DirectoryEntry, void, void> {
  const fd = openSync(`/proc/self/fd/${dir}`, O_RDONLY | O_DIRECTORY)
  try {
    const buffer = Buffer.allocUnsafeSlow(BUFFER)
    const next = () => getdents(fd, buffer)
    for (let filled = next(); filled > 0; filled = next())
      for (let at = 0; at < filled; at += buffer.readUInt16LE(at + LENGTH)) {
        const name = buffer.subarray(at + NAME, buffer.indexOf(0, at + NAME))
        if (isDots(name)) continue
        yield { name: Buffer.from(name), type: KINDS[buffer.readUInt8(at + TYPE)] ?? 'other' }
      }
  } finally {
    closeSync(fd)
  }
}

const isDots = (name: Buffer): boolean =>
  name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT))
