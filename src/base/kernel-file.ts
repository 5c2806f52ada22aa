import { closeSync, openSync, readSync } from 'node:fs'

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
