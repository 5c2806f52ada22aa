/** Both versions of a changed file, to show or to merge them. What is too large, or is no text, is not read. */
import { readSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import type { Change } from './change.ts'
import { type Entry, unlocked, withFile } from './entry.ts'
import type { OpenDirectories } from './open-directories.ts'

export interface Sides {
  /** Undefined where there is no file. */
  readonly before: Buffer | undefined
  readonly after: Buffer | undefined
}

const LARGEST = 1024 * 1024

/** Undefined when one of them is binary, too large, or cannot be read. */
export function readSides(
  { path, before, after, merged }: Change,
  directories: OpenDirectories,
): Sides | undefined {
  const isLarge = (entry: Entry | undefined): boolean => entry?.type === 'file' && entry.size > LARGEST
  if (isLarge(before) || isLarge(after)) return undefined
  try {
    const { dir, layer, name } = directories.find(path)
    // The user's own locked file stays locked: a changed mode would look like an edit.
    const open = directories.areLayers ? unlocked : <T>(_dir: number, _name: string, act: () => T): T => act()
    const sides = {
      before:
        before?.type === 'file' && dir !== undefined ? open(dir, name, () => read(dir, name)) : undefined,
      after:
        merged !== undefined
          ? Buffer.from(merged)
          : after?.type === 'file' && layer !== undefined
            ? unlocked(layer, name, () => read(layer, name))
            : undefined,
    }
    return isText(sides.before) && isText(sides.after) ? sides : undefined
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

/** It may grow meanwhile. */
const read = (dir: number, name: string): Buffer =>
  withFile(dir, name, (fd, { size }) => {
    const bytes = Buffer.allocUnsafe(Math.min(Number(size), LARGEST) + 1)
    let length = 0
    for (let n = 1; n > 0 && length < bytes.length; length += n)
      n = readSync(fd, bytes, length, bytes.length - length, length)
    return bytes.subarray(0, length)
  })

/** As git decides: no NUL byte at the beginning. pen shows it as text, so it must be UTF-8 as well. */
const isText = (bytes: Buffer | undefined): boolean =>
  bytes === undefined ||
  (bytes.length <= LARGEST && !bytes.includes(0) && Buffer.from(bytes.toString()).equals(bytes))
