/**
 * The content of a file, block by block, without its holes: a sandbox can make a file of holes that has terabytes. The
 * digest is of the blocks that are not zero, so it does not depend on where holes are.
 */
import { ftruncateSync, readSync, writeSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { systemCall } from '../base/kernel/system-call.ts'

const BLOCK = 64 * 1024
const SEEK_DATA = 3
const ZERO = Buffer.alloc(BLOCK)
const block = Buffer.allocUnsafeSlow(BLOCK)

/** `size` is the file's size before. A file that shrinks meanwhile gets a digest that fits no file. */
export function digestContent(
  fd: number,
  size: number,
  onBlock: (bytes: Uint8Array, offset: number) => void = () => undefined,
): string {
  const hash = new Bun.CryptoHasher('sha256')
  // Every block has its place and length before it, so that no content looks like another file's.
  hash.update(`${size}\n`)
  for (let offset = 0; offset < size; ) {
    const length = fill(fd, offset, Math.min(BLOCK, size - offset))
    const bytes = block.subarray(0, length)
    if (length === 0) {
      hash.update('the file shrank')
      break
    }
    if (bytes.equals(ZERO.subarray(0, length))) {
      offset = nextData(fd, offset + length, size)
      continue
    }
    hash.update(`${offset} ${length}\n`)
    hash.update(bytes)
    onBlock(bytes, offset)
    offset += length
  }
  return hash.digest('hex')
}

/** Copies what `digestContent` reads, with its holes. */
export function copyContent(from: number, to: number, size: number): string {
  const digest = digestContent(from, size, (bytes, offset) => {
    for (let done = 0; done < bytes.length; )
      done += writeSync(to, bytes, done, bytes.length - done, offset + done)
  })
  ftruncateSync(to, size)
  return digest
}

function fill(fd: number, offset: number, wanted: number): number {
  let done = 0
  while (done < wanted) {
    const n = readSync(fd, block, done, wanted - done, offset + done)
    if (n === 0) break
    done += n
  }
  return done
}

/** At the beginning of a block, so that equal files have equal blocks. */
function nextData(fd: number, offset: number, size: number): number {
  if (offset >= size) return size
  try {
    const data = systemCall('lseek', fd, offset, SEEK_DATA)
    return data - (data % BLOCK)
  } catch (error) {
    const errno = errnoOf(error)
    // ENXIO: only holes follow. EINVAL: the file system has no holes.
    if (errno === 'ENXIO') return size
    if (errno === 'EINVAL') return offset
    throw error
  }
}
