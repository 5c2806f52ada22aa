/**
 * Paths that a commit from a sandbox may not bring to the host without consent: protected places, and `.gitmodules`. The
 * sandbox cannot write them in the working tree, but it can commit them, and the user's next checkout would.
 */
import { readRegularFile } from '../base/regular-file.ts'

const MAX_BYTES = 16 * 1024 * 1024

/** `protectedPaths` are absolute. The answer takes a path below `top`, and the id of its content. */
export function guardedPaths(
  top: string,
  protectedPaths: readonly string[],
): (path: string, blob: string) => boolean {
  const below = protectedPaths.flatMap(path =>
    path.startsWith(`${top}/`) ? [path.slice(top.length + 1)] : [],
  )
  const places = new Set(['.gitmodules', ...below])
  const isProtected = (path: string): boolean => {
    for (let part = path; part !== ''; part = part.slice(0, Math.max(0, part.lastIndexOf('/'))))
      if (places.has(part)) return true
    return false
  }
  // What is on the disk already is the user's own: the sandbox could not write it.
  return (path, blob) => isProtected(path) && blobId(`${top}/${path}`, blob.length) !== blob
}

function blobId(file: string, idLength: number): string | undefined {
  try {
    const content = readRegularFile(file, { maxBytes: MAX_BYTES })
    if (content === undefined) return undefined
    const hash = new Bun.CryptoHasher(idLength === 64 ? 'sha256' : 'sha1')
    return hash.update(`blob ${content.length}\0`).update(content).digest('hex')
  } catch {
    return undefined // a link or a special file: not the content of the commit
  }
}
