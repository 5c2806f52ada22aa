/**
 * Paths that a commit from a sandbox may not bring to the host without consent: protected places, and `.gitmodules`. The
 * sandbox cannot write them in the working tree, but it can commit them, and the user's next checkout would.
 */
import { readRegularFile } from '../base/regular-file.ts'
import { parentsOf } from './apply-sync.ts'

const MAX_BYTES = 16 * 1024 * 1024

/**
 * `protectedPaths` are absolute. `held` are those that were there when the run began. The answer takes a path below `top`, and
 * the id of its content.
 */
export function guardedPaths(
  top: string,
  protectedPaths: readonly string[],
  held: readonly string[],
): (path: string, blob: string, isLink?: boolean) => boolean {
  const below = protectedPaths.flatMap(path =>
    path.startsWith(`${top}/`) ? [path.slice(top.length + 1)] : [],
  )
  // Some file systems do not tell `.VSCODE` from `.vscode`.
  const places = new Set(['.gitmodules', ...below].map(path => path.toLowerCase()))
  const mounted = new Set(held)
  const isIn = (set: ReadonlySet<string>, path: string, prefix = ''): boolean => {
    for (let part = path; part !== ''; part = part.slice(0, Math.max(0, part.lastIndexOf('/'))))
      if (set.has(`${prefix}${part}`)) return true
    return false
  }
  // What a mount holds is the user's own: the sandbox could not write it. In other places, a file of the sandbox's may lie for a
  // moment, until it is moved away.
  const isOwn = (path: string, blob: string): boolean =>
    isIn(mounted, path, `${top}/`) && blobId(`${top}/${path}`, blob.length) === blob
  // `.claude` as a link to a directory of the sandbox's brings `.claude/settings.json`.
  const above = new Set([...places].flatMap(parentsOf))
  return (path, blob, isLink = false) =>
    (isLink && above.has(path.toLowerCase())) || (isIn(places, path.toLowerCase()) && !isOwn(path, blob))
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
