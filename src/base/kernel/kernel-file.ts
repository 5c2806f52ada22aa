import { closeSync, openSync, readSync } from 'node:fs'
import { errnoOf } from '../error.ts'

/** Reused: a new buffer for each file, as in `readFileSync`, costs more than the read. */
let buffer: Buffer | undefined

/** Reads a small text file below `/proc` or `/sys`. Such files report no size, so they are read to their end. */
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

/** Reads a file below `/proc/PID`. Undefined when the process is gone, which can happen at any time and is no error. */
export function readOfProcess(
  pid: number,
  file: string,
  encoding: 'latin1' | 'utf8' = 'latin1',
): string | undefined {
  try {
    return readKernelFile(`/proc/${pid}/${file}`, encoding)
  } catch (error) {
    // ENOENT: gone before the open. ESRCH: gone during the read. EINVAL: it ends, and its namespaces are gone.
    if (['ENOENT', 'ESRCH', 'EINVAL'].includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
}
