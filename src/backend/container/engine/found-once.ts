/** What takes a program to find out and stays true until something of the machine changes: kept in a file of pen's own, under a key that changes with it. */
import { mkdirSync } from 'node:fs'
import { writeFileAtomically } from '../../../base/atomic-file.ts'
import { dirname } from '../../../base/posix-path.ts'
import { readRegularFile } from '../../../base/regular-file.ts'

const MOST_BYTES = 65_536

export async function foundOnce<T>(file: string, key: string, find: () => Promise<T>): Promise<T> {
  const known = recall<T>(file, key)
  if (known !== undefined) return known
  const facts = await find()
  remember(file, key, facts)
  return facts
}

/** Where it cannot be kept it is found again. A home that cannot be used is told by whoever has to use it. */
export function remember<T>(file: string, key: string, facts: T): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileAtomically(file, JSON.stringify({ key, facts }), { durable: false })
  } catch {}
}

/** A broken file is as good as none. */
export function recall<T>(file: string, key: string, maxBytes = MOST_BYTES): T | undefined {
  try {
    const bytes = readRegularFile(file, { maxBytes, owner: 'self-or-root' })
    const value = bytes && (JSON.parse(bytes.toString('utf8')) as { key?: string; facts?: T })
    return value?.key === key ? value.facts : undefined
  } catch {
    return undefined
  }
}
