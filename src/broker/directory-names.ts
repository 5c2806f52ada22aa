/**
 * What is in a directory, as the kernel tells it, a buffer at a time. The runtime's own reader takes a whole directory into
 * memory before it gives the first name away, and a sandbox may have filled it.
 */
import { closeSync, constants, lstatSync, openSync } from 'node:fs'
import type { EntryKind } from '../wire/broker-messages.ts'
import { getdents } from './kernel.ts'

const { O_RDONLY, O_DIRECTORY } = constants
const BUFFER = 32 * 1024
/** struct linux_dirent64 { u64 ino; i64 off; u16 length; u8 type; char name[] } */
const [LENGTH, TYPE, NAME] = [16, 18, 19]
const KINDS: Readonly<Record<number, EntryKind>> = { 4: 'directory', 8: 'file', 10: 'link' }
const UNKNOWN = 0

export interface DirectoryName {
  /** Undefined for a name that is no text. */
  readonly name: string | undefined
  readonly kind: EntryKind
}

/** `dir` is any descriptor of a directory; it stays the caller's. */
export function* directoryNames(dir: number): Generator<DirectoryName, void, void> {
  const fd = openSync(`/proc/self/fd/${dir}`, O_RDONLY | O_DIRECTORY)
  try {
    const buffer = Buffer.alloc(BUFFER)
    for (let filled = getdents(fd, buffer); filled > 0; filled = getdents(fd, buffer))
      for (let at = 0; at < filled; at += buffer.readUInt16LE(at + LENGTH)) {
        const end = buffer.indexOf(0, at + NAME)
        const name = textOf(buffer.subarray(at + NAME, end))
        if (name === '.' || name === '..') continue
        const type = buffer.readUInt8(at + TYPE)
        yield {
          name,
          kind: type === UNKNOWN && name !== undefined ? lookAt(fd, name) : (KINDS[type] ?? 'other'),
        }
      }
  } finally {
    closeSync(fd)
  }
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Some file systems tell no more than the name. */
function lookAt(fd: number, name: string): EntryKind {
  const stats = lstatSync(`/proc/self/fd/${fd}/${name}`, { throwIfNoEntry: false })
  if (stats?.isFile()) return 'file'
  if (stats?.isDirectory()) return 'directory'
  return stats?.isSymbolicLink() ? 'link' : 'other'
}
