import { rmdirSync } from 'node:fs'

/** A directory that has something in it stays, and so does one that this user may not remove. */
export function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // It is no longer pen's alone.
  }
}
