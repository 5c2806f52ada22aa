/**
 * Where grants lie that end by themselves: one small file each, written once and never edited. Whoever removes the file has
 * used the grant up, so that of many connections, of many sandboxes, one gets it.
 */
import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, unlinkSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'

export const grantDirectory = (stateDir: string): string => `${stateDir}/grants`

/** By time. What a killed writer left is not among them. */
export function grantFiles(stateDir: string): string[] {
  const dir = grantDirectory(stateDir)
  if (lstatSync(dir, { throwIfNoEntry: false }) === undefined) return []
  return readdirSync(dir)
    .filter(name => GRANT_FILE.test(name))
    .sort()
}

/** `20260102T030405678Z-1a2b3c4d.json`: sorts by time, and the same name never comes twice. */
const GRANT_FILE = /^\d{8}T\d{9}Z-[0-9a-f]{8}\.json$/

export const newGrantFile = (now: Date): string =>
  `${now.toISOString().replaceAll(/[-:.]/g, '')}-${crypto.randomUUID().slice(0, 8)}.json`

/** True for exactly one caller, of all there are. */
export function claimGrant(stateDir: string, file: string): boolean {
  if (!GRANT_FILE.test(file)) return false
  try {
    unlinkSync(`${grantDirectory(stateDir)}/${file}`)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    throw error
  }
  // A power failure must not give back what was used.
  const fd = openSync(grantDirectory(stateDir), 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  return true
}
