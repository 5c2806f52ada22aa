/**
 * Covers a directory of a sandbox in which nothing runs yet, and keeps parts of it visible. The parts are cloned as
 * detached mounts before the cover hides them, and are then mounted inside the cover.
 */
import { closeSync, mkdirSync, writeFileSync } from 'node:fs'
import { type Found, findBeneath } from '../../base/beneath/open-beneath.ts'
import type { HoldResult } from '../backend.ts'
import { type FileIdentity, isSameFile } from './file-identity.ts'
import {
  attach,
  cloneTree,
  mountScratch,
  NOEXEC,
  NOSUID_NODEV,
  RDONLY,
  READ_ONLY,
  setAttributes,
} from './mount-calls.ts'

/** A grant below the covered directory, with the mounts below it. Without a mode it keeps its own. */
export interface ShownBelow extends FileIdentity {
  readonly path: string
  readonly mode?: 'ro' | 'rw' | undefined
}

interface TakenUp {
  readonly tree: number
  readonly kind: Found['kind']
  readonly path: string
}

/** The cover can be passed through, but not listed. */
const OPTIONS = 'mode=111,size=4k'

export function coverAround(
  path: string,
  shows: readonly ShownBelow[],
  found: Found,
  root: number,
): HoldResult {
  const taken: TakenUp[] = []
  try {
    for (const shown of shows) {
      const one = takeUp(shown, root)
      if (one === undefined) return 'changed'
      taken.push(one)
    }
    mountScratch(found.fd, OPTIONS, NOSUID_NODEV | NOEXEC)
    for (const { tree, kind, path: at } of taken) {
      const made = putAt(path, at, kind, tree, root)
      if (!made) return 'changed'
    }
    // The descriptor is of the covered directory, so the cover is opened by path. No other process can change that path
    // yet.
    return (
      findBeneath(root, path, ({ fd }) => {
        setAttributes(fd, READ_ONLY | NOEXEC)
        return 'held' as const
      }) ?? 'changed'
    )
  } finally {
    for (const { tree } of taken) closeSync(tree)
  }
}

function takeUp({ path, mode, ...meant }: ShownBelow, root: number): TakenUp | undefined {
  return findBeneath(root, path, found => {
    if (!isSameFile(meant, found)) return undefined
    const tree = cloneTree(found.fd)
    if (mode === 'ro') setAttributes(tree, READ_ONLY)
    else if (mode === 'rw') setAttributes(tree, NOSUID_NODEV, { without: RDONLY })
    return { tree, kind: found.kind, path }
  })
}

/** Makes the parent directories inside the cover. */
function putAt(cover: string, at: string, kind: Found['kind'], tree: number, root: number): boolean {
  return (
    findBeneath(root, cover, ({ fd }) => {
      const names = at.slice(cover.length + 1).split('/')
      const last = names.pop() ?? ''
      const above = [`/proc/self/fd/${fd}`, ...names].join('/')
      mkdirSync(above, { recursive: true, mode: 0o711 })
      if (kind === 'directory') mkdirSync(`${above}/${last}`)
      else writeFileSync(`${above}/${last}`, '')
      return findBeneath(fd, at.slice(cover.length + 1), place => {
        attach(tree, place.fd)
        return true
      })
    }) ?? false
  )
}
