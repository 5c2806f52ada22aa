/**
 * For root: a detached copy of each bind in which the sandbox's uid owns the tree. New files belong to the tree's owner
 * on the disk, and no process of the sandbox is root on the host.
 */
import { closeSync, lstatSync } from 'node:fs'
import type { UndoStack } from '../../base/undo.ts'
import { type Identity, IdMapping, type TargetId } from '../mounts/id-mapping.ts'
import { cloneTree, NOSUID_NODEV, RDONLY, setAttributes } from '../mounts/mount-calls.ts'
import { openPinned } from '../process/pinned.ts'
import type { Bind } from './arguments.ts'

export interface OwnedTrees {
  /** One for each bind, in the same order. */
  readonly descriptors: readonly number[]
}

/** Undefined when the sandbox's uid already owns everything. `owner` is the owner of the project. */
export function ownedTrees(
  binds: readonly Bind[],
  owner: Identity,
  sandbox: Identity,
  undo: UndoStack,
  /**
   * How ids outside the mapping appear. A runtime that makes files as root, and then gives them to the sandbox, needs
   * root to be mapped.
   */
  target: TargetId,
): OwnedTrees | undefined {
  const owners = binds.map(({ from }) => lstatSync(from).uid)
  // Files of root, such as pen's volumes, and of the project's owner become the sandbox's.
  const wanted = owners.map(uid => uid !== sandbox.uid && (uid === 0 || uid === owner.uid))
  if (!wanted.includes(true)) return undefined
  const mappings = new Map<number, IdMapping>()
  undo.push('the id mappings', () => {
    for (const mapping of mappings.values()) mapping.end()
  })
  const mappingOf = (uid: number): IdMapping => {
    const known = mappings.get(uid)
    if (known !== undefined) return known
    const made = new IdMapping(uid === 0 ? { uid: 0, gid: 0 } : owner, sandbox, target)
    mappings.set(uid, made)
    return made
  }
  const descriptors = binds.map(({ from, mode }, i) => {
    const tree = detached(from)
    undo.push('a detached mount tree', () => closeSync(tree))
    if (wanted[i]) mappingOf(owners[i] ?? 0).apply(tree, from)
    setAttributes(tree, mode === 'ro' ? NOSUID_NODEV | RDONLY : NOSUID_NODEV, { below: true })
    return tree
  })
  return { descriptors }
}

/** Clones by a descriptor that was compared with its path, so the path cannot be swapped in between. */
function detached(path: string): number {
  const pinned = openPinned(path)
  try {
    return cloneTree(pinned)
  } finally {
    closeSync(pinned)
  }
}
