import { errnoOf } from './error.ts'

/** Loads `node:fs` on first use, because the exec daemon and the supervisor start without it. */
export function writeAll(fd: number, data: string | Uint8Array): void {
  const { writeSync } = process.getBuiltinModule('node:fs')
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(fd, bytes, done)
    } catch (error) {
      if (errnoOf(error) !== 'EAGAIN') throw error
      // Another process made the shared descriptor non-blocking, and its reader is slow.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
    }
  }
}
