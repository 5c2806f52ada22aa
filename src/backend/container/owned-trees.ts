/**
 * For root: detached copies of mounts in which the sandbox's uid owns the tree. New files belong to the tree's owner on
 * the disk, and no process of the sandbox is root on the host.
 */
import { closeSync, lstatSync } from 'node:fs'
import type { UndoStack } from '../../base/undo.ts'
import { detachedTree, type TreeSource } from '../mounts/clone-trees.ts'
import { type Identity, IdMapping, type TargetId } from '../mounts/id-mapping.ts'

export class OwnedTrees {
  readonly #owner: Identity
  readonly #sandbox: Identity
  readonly #target: TargetId
  readonly #undo: UndoStack
  readonly #mappings = new Map<number, IdMapping>()

  constructor(
    /** The owner of the project. */
    owner: Identity,
    sandbox: Identity,
    undo: UndoStack,
    /**
     * How ids outside the mapping appear. A runtime that makes files as root, and then gives them to the sandbox, needs
     * root to be mapped.
     */
    target: TargetId,
  ) {
    this.#owner = owner
    this.#sandbox = sandbox
    this.#target = target
    this.#undo = undo
    undo.push('the id mappings', () => {
      for (const mapping of this.#mappings.values()) mapping.end()
    })
  }

  /** Files of root, such as pen's volumes, and of the project's owner become the sandbox's. */
  isMapped({ from }: TreeSource): boolean {
    const { uid } = lstatSync(from)
    return uid !== this.#sandbox.uid && (uid === 0 || uid === this.#owner.uid)
  }

  tree(source: TreeSource): number {
    const tree = detachedTree(source)
    this.#undo.push('a detached mount tree', () => closeSync(tree))
    if (this.isMapped(source)) this.#mappingOf(lstatSync(source.from).uid).apply(tree, source.from)
    return tree
  }

  #mappingOf(uid: number): IdMapping {
    const known = this.#mappings.get(uid)
    if (known !== undefined) return known
    const owner = uid === 0 ? { uid: 0, gid: 0 } : this.#owner
    const made = new IdMapping(owner, this.#sandbox, this.#target)
    this.#mappings.set(uid, made)
    return made
  }
}
