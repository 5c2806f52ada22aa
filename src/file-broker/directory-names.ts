/** What is in a directory, for the broker's answers. A sandbox may have filled it, so it is never held in memory as a whole. */
import { lstatSync } from 'node:fs'
import { directoryEntries } from '../base/beneath/directory-entries.ts'
import type { EntryKind } from '../protocol/broker-messages.ts'

export interface DirectoryName {
  /** Undefined for a name that is no text. */
  readonly name: string | undefined
  readonly kind: EntryKind
}

/** `dir` is any descriptor of a directory; it stays the caller's. */
export function* directoryNames(dir: number): Generator<DirectoryName, void, void> {
  for (const { name: bytes, type } of directoryEntries(dir)) {
    const name = textOf(bytes)
    const isUntold = type === 'unknown'
    yield { name, kind: !isUntold ? type : name === undefined ? 'other' : lookAt(dir, name) }
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
