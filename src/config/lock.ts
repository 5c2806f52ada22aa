/**
 * One pen at a time edits a file or supervises a sandbox. The kernel holds the lock (flock) and releases it when the owner
 * dies, so no lock is ever stale. A lock file with a pid could be taken over twice, and pids are reused.
 */
import { closeSync, constants, fstatSync, openSync, rmSync, statSync } from 'node:fs'
import { errnoText, PenError } from '../base/error.ts'
import { cLibrary } from '../base/kernel/c-library.ts'

const WAIT_MS = 10
const LOCK_TIMEOUT_MS = 10_000
const LOCK_EX_NB = 2 | 4

/** Held until it is released or this process ends. */
export interface Lock {
  /** Open for reading and writing. Child processes do not inherit it. */
  readonly fd: number
  release(): void
}

export interface LockWait {
  readonly timeoutMs: number
  /** The error after the timeout. */
  readonly busy: string
}

/** Runs `work` under the lock of a file, so that concurrent edits lose nothing. */
export async function withLock<T>(file: string, work: () => T): Promise<T> {
  const busy = 'another pen is editing the configuration'
  const lock = await takeLock(`${file}.lock`, { timeoutMs: LOCK_TIMEOUT_MS, busy })
  try {
    return work()
  } finally {
    lock.release()
  }
}

export async function takeLock(path: string, { timeoutMs, busy }: LockWait): Promise<Lock> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const lock = tryLock(path)
    if (lock !== undefined) return lock
    if (Date.now() > deadline)
      throw new PenError('STATE', { what: busy, at: path, hint: 'wait for it to end, then try again' })
    await new Promise(resolve => setTimeout(resolve, WAIT_MS * (0.5 + Math.random())))
  }
}

/** Undefined while another process holds the lock. */
export function tryLock(path: string): Lock | undefined {
  const fd = take(path)
  if (fd === undefined) return undefined
  return {
    fd,
    release: () => {
      // Remove the name before the release. A process that opened the old file sees that it is unlinked, and makes a new one.
      if (standsAt(path, fd)) rmSync(path, { force: true })
      closeSync(fd)
    },
  }
}

/** False when the name was removed: it may be another process's lock by now. */
const standsAt = (path: string, fd: number): boolean =>
  fstatSync(fd).ino === statSync(path, { throwIfNoEntry: false })?.ino

/** Neither Node nor Bun has flock. */
const library = cLibrary({ flock: { args: ['i32', 'i32'], returns: 'i32' } })

function take(lock: string): number | undefined {
  let fd: number | undefined
  try {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants
    fd = openSync(lock, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
    if (library().flock(fd, LOCK_EX_NB) === 0 && standsAt(lock, fd)) return fd
    closeSync(fd)
    return undefined
  } catch (error) {
    if (fd !== undefined) closeSync(fd)
    throw new PenError('STATE', {
      what: `the lock could not be taken (${errnoText(error)})`,
      at: lock,
      hint: 'check that you can write in the directory and that the disk is not full',
      cause: error,
    })
  }
}
