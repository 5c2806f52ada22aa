/**
 * Finds a path in a sandbox's own view of the files, from outside, while hostile processes change it. Each component is
 * opened without following links, so the answer is about that very place or there is none.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { errnoOf } from '../error.ts'

export const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW } = constants

export interface Found {
  /** Open for the length of the call only; the top of what is mounted there. */
  readonly fd: number
  readonly dev: bigint
  readonly ino: bigint
  readonly kind: 'file' | 'directory' | 'link'
  /** Whether a mount begins here. */
  readonly mountPoint: boolean
}

/** Undefined when nothing is there, or when a link is on the way. */
export function findBeneath<T>(root: number, path: string, act: (found: Found) => T): T | undefined {
  const names = path.split('/').filter(name => name !== '')
  const last = names.pop()
  const parent = last === undefined ? undefined : openBeneath(root, names.join('/'))
  if (last === undefined || parent === undefined) return undefined
  try {
    const fd = openBeneath(parent, last)
    if (fd === undefined) return undefined
    try {
      return act(describe(fd, parent))
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return undefined
  } finally {
    closeSync(parent)
  }
}

/** A descriptor of what stands there itself, for the caller to close. */
export function openBeneath(root: number, path: string): number | undefined {
  let at = openSync(`/proc/self/fd/${root}`, O_PATH | O_DIRECTORY)
  const names = path.split('/').filter(name => name !== '')
  for (const [i, name] of names.entries()) {
    const above = at
    try {
      const kind = i === names.length - 1 ? 0 : O_DIRECTORY
      at = openSync(`/proc/self/fd/${above}/${name}`, O_PATH | O_NOFOLLOW | kind)
    } catch (error) {
      if (errnoOf(error) === undefined) throw error
      return undefined
    } finally {
      closeSync(above)
    }
  }
  return at
}

function describe(fd: number, parent: number): Found {
  const stats = fstatSync(fd, { bigint: true })
  return {
    fd,
    dev: stats.dev,
    ino: stats.ino,
    kind: stats.isSymbolicLink() ? 'link' : stats.isDirectory() ? 'directory' : 'file',
    mountPoint: mountOf(fd) !== mountOf(parent),
  }
}

const mountOf = (fd: number): string | undefined =>
  /^mnt_id:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
