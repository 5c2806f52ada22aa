import { closeSync, openSync, readSync } from 'node:fs'
import { errnoOf } from '../error.ts'

/** Kept: a fresh one for each file, as `readFileSync` takes, costs more than the reading. */
let buffer: Buffer | undefined

/** A small text of the kernel's own, below `/proc` or `/sys`. Such files have no size, and are read until they end. */
export function readKernelFile(path: string, encoding: 'latin1' | 'utf8' = 'latin1'): string {
  const fd = openSync(path, 'r')
  try {
    buffer ??= Buffer.allocUnsafeSlow(16_384)
    let room = buffer
    for (let done = 0; ; ) {
      const n = readSync(fd, room, done, room.length - done, null)
      if (n === 0) return room.toString(encoding, 0, done)
      done += n
      if (done === room.length) room = Buffer.concat([room], room.length * 2)
    }
  } finally {
    closeSync(fd)
  }
}

/** A file below `/proc/PID`; undefined for a process that is gone, which may happen between any two looks and is no failure. */
export function readOfProcess(
  pid: number,
  file: string,
  encoding: 'latin1' | 'utf8' = 'latin1',
): string | undefined {
  try {
    return readKernelFile(`/proc/${pid}/${file}`, encoding)
  } catch (error) {
    // The first where it was gone before, the second where it went while it was read.
    if (['ENOENT', 'ESRCH'].includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
}
