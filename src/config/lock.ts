import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'

const WAIT_MS = 10
const PATIENCE_MS = 5000
const WRITTEN_BY_MS = 1000

/**
 * Runs `work` while no other pen does the same for this file: two edits at once lose nothing. The lock is a file that
 * names its owner, so that one left by a killed pen is recognised and taken over.
 */
export async function withLock<T>(file: string, work: () => T): Promise<T> {
  const lock = `${file}.lock`
  const deadline = Date.now() + PATIENCE_MS
  while (!take(lock)) {
    if (isStale(lock)) takeAway(lock)
    else if (Date.now() > deadline)
      throw new PenError('STATE', {
        what: 'another pen is editing the configuration',
        at: lock,
        hint: 'wait for it to end, then try again',
      })
    else await new Promise(resolve => setTimeout(resolve, WAIT_MS))
  }
  try {
    return work()
  } finally {
    rmSync(lock, { force: true })
  }
}

function take(lock: string): boolean {
  try {
    const fd = openSync(lock, 'wx', 0o600)
    writeSync(fd, String(process.pid))
    closeSync(fd)
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw new PenError('STATE', {
      what: `the configuration cannot be locked (${errnoOf(error) ?? 'unknown error'})`,
      at: lock,
      hint: 'check that the directory is yours and that the disk is not full',
      cause: error,
    })
  }
}

function isStale(lock: string): boolean {
  try {
    const owner = Number(readFileSync(lock, 'utf8'))
    // Not written yet: its owner is between two calls, or was killed there.
    if (!Number.isInteger(owner) || owner <= 0) return Date.now() - statSync(lock).mtimeMs > WRITTEN_BY_MS
    process.kill(owner, 0)
    return false
  } catch (error) {
    return errnoOf(error) === 'ESRCH'
  }
}

/** By a rename, which only one of several can win. */
function takeAway(lock: string): void {
  const aside = `${lock}.${process.pid}`
  try {
    renameSync(lock, aside)
    rmSync(aside, { force: true })
  } catch {
    // Another one was faster.
  }
}
