/**
 * Caches which image a name means, because an engine's answer takes longer than the rest of a start. An id names contents, so a
 * stale entry never starts other contents. If the image is gone, the start fails and asks the engine again.
 */
import { mkdirSync } from 'node:fs'
import type { Engine } from '../backend/container/engine/engine.ts'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { sha256 } from '../base/sha256.ts'
import { IMAGE_ID } from './inspect.ts'

export function cachedImageId(engine: Engine, name: string, cacheDir: string): string | undefined {
  const id = read(engine, name, cacheDir)
  return id !== undefined && IMAGE_ID.test(id) ? id : undefined
}

export function cacheImageId(engine: Engine, name: string, id: string, cacheDir: string): void {
  mkdirSync(directoryOf(cacheDir), { recursive: true, mode: 0o700 })
  writeFileAtomically(placeOf(engine, name, cacheDir), id)
}

/** Caches that the engine has no image of that name, until one is built. */
export function cacheImageAbsence(engine: Engine, name: string, cacheDir: string): void {
  cacheImageId(engine, name, ABSENT, cacheDir)
}

export function isCachedAbsent(engine: Engine, name: string, cacheDir: string): boolean {
  return read(engine, name, cacheDir) === ABSENT
}

const ABSENT = 'absent'

function read(engine: Engine, name: string, cacheDir: string): string | undefined {
  try {
    const bytes = readRegularFile(placeOf(engine, name, cacheDir), { maxBytes: 128, owner: 'self-or-root' })
    return bytes?.toString('utf8')
  } catch {
    return undefined // a damaged cache file: ask the engine again
  }
}

const directoryOf = (cacheDir: string): string => `${cacheDir}/images/by-name`

/** The same name can mean another image in another storage. */
const placeOf = (engine: Engine, name: string, cacheDir: string): string =>
  `${directoryOf(cacheDir)}/${sha256(JSON.stringify([engine.name, engine.flags, Object.entries(engine.env), name]))}`
