/**
 * One pen at a time edits a file, or keeps a sandbox. The kernel keeps the lock (flock) and takes it back from whoever dies, so
 * there is none to be taken for stale: a file that names its owner can be taken over by two at once, and outlives a reused number.
 */
import { closeSync, constants, fstatSync, openSync, rmSync, statSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'

const WAIT_MS = 10
const LOCK_TIMEOUT_MS = 10_000
const LOCK_EX_NB = 2 | 4

/** Ours until it is released, or this process ends. */
export interface Lock {
  /** Open for reading and writing. Not inherited by what is started meanwhile. */
  readonly fd: number
  release(): void
}

export interface LockWait {
  readonly timeoutMs: number
  /** What to say when it is over. */
  readonly busy: string
}

/** Runs `work` while no other pen does the same for this file: two edits at once lose nothing. */
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
    const lock = await tryLock(path)
    if (lock !== undefined) return lock
    if (Date.now() > deadline)
      throw new PenError('STATE', { what: busy, at: path, hint: 'wait for it to end, then try again' })
    await new Promise(resolve => setTimeout(resolve, WAIT_MS * (0.5 + Math.random())))
  }
}

/** Undefined while somebody else has it. */
export async function tryLock(path: string): Promise<Lock | undefined> {
  const fd = take(path, await loadFlock())
  if (fd === undefined) return undefined
  return {
    fd,
    release: () => {
      // While it is still held: whoever opened it meanwhile sees that it has no name any more, and makes a new one.
      if (standsAt(path, fd)) rmSync(path, { force: true })
      closeSync(fd)
    },
  }
}

/** Not when somebody removed it: another's may stand there by now. */
const standsAt = (path: string, fd: number): boolean =>
  fstatSync(fd).ino === statSync(path, { throwIfNoEntry: false })?.ino

type Flock = (fd: number, operation: number) => number

/** Undefined while somebody else has it. */
function take(lock: string, flock: Flock): number | undefined {
  let fd: number | undefined
  try {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants
    fd = openSync(lock, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
    if (flock(fd, LOCK_EX_NB) === 0 && standsAt(lock, fd)) return fd
    closeSync(fd)
    return undefined
  } catch (error) {
    if (fd !== undefined) closeSync(fd)
    throw new PenError('STATE', {
      what: `the place cannot be locked (${errnoOf(error) ?? 'unknown error'})`,
      at: lock,
      hint: 'check that the directory is yours and that the disk is not full',
      cause: error,
    })
  }
}

let loaded: Flock | undefined

/** Bun has no call for it. */
async function loadFlock(): Promise<Flock> {
  const { cLibrary } = await import('../base/kernel/c-library.ts')
  loaded ??= cLibrary({ flock: { args: ['i32', 'i32'], returns: 'i32' } })().flock
  return loaded
}
