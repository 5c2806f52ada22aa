/**
 * All refs of a git directory as one `packed-refs` file. Copying 50,000 loose refs one by one takes ten seconds; one file
 * takes a fraction of one. Symbolic refs cannot be packed, and are returned on their own.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'

export interface FoldedRefs {
  /** The content of `packed-refs`. */
  readonly packed: Buffer
  /** Refs that stay files, by name, with their content: symbolic ones, and those of a single worktree. */
  readonly files: ReadonlyMap<string, Buffer>
}

export const OBJECT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/
/** Packed, they would appear in every worktree. */
const OF_WORKTREE = /^refs\/(?:bisect|worktree|rewritten)\//
/** Files that are no refs: git refuses such names, and one with a line break would add a line to `packed-refs`. */
const NO_REF = /\.lock$|\.\.|[\0- \x7f~^:?*[\\]/
const MAX_DEPTH = 64

/** `packed` is the host's own `packed-refs`. */
export function foldRefs(gitDir: string, packed: Buffer): FoldedRefs {
  const loose = new Map<string, string>()
  const files = new Map<string, Buffer>()
  if (lstatSync(`${gitDir}/refs`, { throwIfNoEntry: false })?.isDirectory() === true)
    readLoose(gitDir, 'refs', 0, loose, files)
  return { packed: loose.size === 0 ? packed : merge(packed, loose), files }
}

/** Files that are neither an object id nor a symbolic ref are broken refs, and stay behind. */
function readLoose(
  gitDir: string,
  below: string,
  depth: number,
  loose: Map<string, string>,
  files: Map<string, Buffer>,
): void {
  for (const entry of readdirSync(`${gitDir}/${below}`, { withFileTypes: true })) {
    const name = `${below}/${entry.name}`
    if (entry.isDirectory() && depth < MAX_DEPTH) readLoose(gitDir, name, depth + 1, loose, files)
    if (!entry.isFile() || NO_REF.test(name)) continue
    const content = readSmall(`${gitDir}/${name}`)
    const id = content?.toString('latin1').trimEnd() ?? ''
    if (OBJECT_ID.test(id) && !OF_WORKTREE.test(name)) loose.set(name, id)
    else if (content !== undefined && (OBJECT_ID.test(id) || id.startsWith('ref: refs/')))
      files.set(name, content)
  }
}

const scratch = Buffer.allocUnsafe(4096)

/** Undefined when the file is gone, a link, or longer than a ref. */
function readSmall(path: string): Buffer | undefined {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const length = readSync(fd, scratch)
      return length === scratch.length || !fstatSync(fd).isFile()
        ? undefined
        : Buffer.from(scratch.subarray(0, length))
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  }
}

/** A loose ref replaces the packed one of the same name. Without the trait "peeled", git peels tags by their objects. */
function merge(packed: Buffer, loose: ReadonlyMap<string, string>): Buffer {
  const all = new Map<string, string>()
  for (const line of packed.toString('latin1').split('\n')) {
    const space = line.indexOf(' ')
    if (space > 0 && !line.startsWith('#') && !line.startsWith('^'))
      all.set(line.slice(space + 1), line.slice(0, space))
  }
  // Names are compared as bytes, as git does: in latin1 every byte is one character.
  for (const [name, id] of loose) all.set(Buffer.from(name).toString('latin1'), id)
  const names = [...all.keys()].sort((a, b) => (a < b ? -1 : 1))
  const lines = names.map(name => `${all.get(name)} ${name}\n`)
  return Buffer.from(`# pack-refs with: sorted \n${lines.join('')}`, 'latin1')
}
