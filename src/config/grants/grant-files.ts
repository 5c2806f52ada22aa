/**
 * The files of temporary grants: one small file each, written once and never edited. Removing the file claims the grant, so
 * exactly one connection of all sandboxes gets it.
 */
import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, unlinkSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'

export const grantDirectory = (stateDir: string): string => `${stateDir}/grants`

/** Sorted by time, without leftovers of a killed writer. */
export function grantFiles(stateDir: string): string[] {
  const dir = grantDirectory(stateDir)
  if (lstatSync(dir, { throwIfNoEntry: false }) === undefined) return []
  return readdirSync(dir)
    .filter(name => GRANT_FILE.test(name))
    .sort()
}

/** `20260102T030405678Z-1a2b3c4d.json`: sorts by time and is unique. */
const GRANT_FILE = /^\d{8}T\d{9}Z-[0-9a-f]{8}\.json$/

export const newGrantFile = (now: Date): string =>
  `${now.toISOString().replaceAll(/[-:.]/g, '')}-${crypto.randomUUID().slice(0, 8)}.json`

/** True for exactly one caller. */
export function claimGrant(stateDir: string, file: string): boolean {
  if (!GRANT_FILE.test(file)) return false
  try {
    unlinkSync(`${grantDirectory(stateDir)}/${file}`)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw error
  }
  // A power failure must not restore a used grant.
  const fd = openSync(grantDirectory(stateDir), 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  return true
}
