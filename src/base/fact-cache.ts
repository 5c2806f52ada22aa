/**
 * Caches a fact that takes long to find out. The fact is in a file of pen, under a key that changes when the fact may
 * have changed.
 */
import { mkdirSync } from 'node:fs'
import { writeFileAtomically } from './atomic-file.ts'
import { dirname } from './posix-path.ts'
import { readRegularFile } from './regular-file.ts'

const MAX_BYTES = 65_536

export async function cachedFact<T>(file: string, key: string, find: () => Promise<T>): Promise<T> {
  const known = recall<T>(file, key)
  if (known !== undefined) return known
  const facts = await find()
  remember(file, key, facts)
  return facts
}

/** Ignores errors: the fact is then found again. Code that needs the directory reports the error. */
export function remember<T>(file: string, key: string, facts: T): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileAtomically(file, JSON.stringify({ key, facts }), { durable: false })
  } catch {}
}

/** A broken file counts as absent. */
export function recall<T>(file: string, key: string, maxBytes = MAX_BYTES): T | undefined {
  try {
    const bytes = readRegularFile(file, { maxBytes, owner: 'self-or-root' })
    const value = bytes && (JSON.parse(bytes.toString('utf8')) as { key?: string; facts?: T })
    return value?.key === key ? value.facts : undefined
  } catch {
    return undefined
  }
}
