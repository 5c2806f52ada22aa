/**
 * One pen at a time edits a file. The kernel keeps the lock (flock) and takes it back from whoever dies, so there is
 * none to be taken for stale: a file that names its owner can be taken over by two at once, and outlives a reused number.
 */
import { closeSync, constants, fstatSync, openSync, rmSync, statSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'

const WAIT_MS = 10
const PATIENCE_MS = 10_000
const LOCK_EX_NB = 2 | 4

/** Runs `work` while no other pen does the same for this file: two edits at once lose nothing. */
export async function withLock<T>(file: string, work: () => T): Promise<T> {
  const lock = `${file}.lock`
  const flock = await loadFlock()
  const deadline = Date.now() + PATIENCE_MS
  let fd = take(lock, flock)
  while (fd === undefined) {
    if (Date.now() > deadline)
      throw new PenError('STATE', {
        what: 'another pen is editing the configuration',
        at: lock,
        hint: 'wait for it to end, then try again',
      })
    await new Promise(resolve => setTimeout(resolve, WAIT_MS * (0.5 + Math.random())))
    fd = take(lock, flock)
  }
  try {
    return work()
  } finally {
    // While it is still held: whoever opened it meanwhile sees that it has no name any more, and makes a new one.
    rmSync(lock, { force: true })
    closeSync(fd)
  }
}

type Flock = (fd: number, operation: number) => number

/** Undefined while somebody else has it. */
function take(lock: string, flock: Flock): number | undefined {
  let fd: number | undefined
  try {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants
    fd = openSync(lock, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
    if (flock(fd, LOCK_EX_NB) === 0 && fstatSync(fd).ino === statSync(lock, { throwIfNoEntry: false })?.ino)
      return fd
    closeSync(fd)
    return undefined
  } catch (error) {
    if (fd !== undefined) closeSync(fd)
    throw new PenError('STATE', {
      what: `the configuration cannot be locked (${errnoOf(error) ?? 'unknown error'})`,
      at: lock,
      hint: 'check that the directory is yours and that the disk is not full',
      cause: error,
    })
  }
}

/** glibc, musl, macOS: the first that the loader knows. Bun has no call for it. */
async function loadFlock(): Promise<Flock> {
  const { dlopen, FFIType } = await import('bun:ffi')
  const musl = `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`
  for (const library of ['libc.so.6', musl, 'libSystem.B.dylib'])
    try {
      return dlopen(library, { flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 } }).symbols
        .flock
    } catch {
      // Another system's.
    }
  throw new PenError('STATE', { what: 'the C library could not be loaded', hint: 'report this' })
}
