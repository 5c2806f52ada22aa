/**
 * The trees of a review layer, as detached mounts: the merged tree, and what is mounted in it. No engine mounts them,
 * because earlier runs wrote the names in the layer, and an engine follows names.
 */
import { closeSync, lstatSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { close } from '../../base/kernel/descriptor.ts'
import { descriptorPair, receiveDescriptors } from '../../base/kernel/pass-descriptors.ts'
import { runWithDescriptors } from '../../base/kernel/run-with-descriptors.ts'
import { ownProgram } from '../../base/own-program.ts'
import { printable } from '../../base/printable.ts'
import type { UndoStack } from '../../base/undo.ts'
import { mergedIn, type Plan, type PlannedLayer } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'
import { CLONE_MODE, detachedTree, type TreeSource } from '../mounts/clone-trees.ts'
import { mountLayerFirst } from '../process/layer-mount.ts'
import { Staging } from '../process/staging.ts'
import type { OwnedTrees } from './owned-trees.ts'

const TIME_LIMIT_MS = 10_000

/** One for each source, in the same order. `owned` is for root. */
export async function layerTrees(
  plan: Plan,
  sources: readonly TreeSource[],
  owned: OwnedTrees | undefined,
  undo: UndoStack,
): Promise<readonly number[]> {
  const { layer } = plan
  if (layer === undefined || sources.length === 0) return []
  if (owned !== undefined) return stagedTrees(plan, layer, sources, owned, undo)
  const trees = await handedTrees(layer, sources)
  undo.push('the trees of the review layer', () => trees.forEach(close))
  return trees
}

/** For root. The overlay is mounted in a mount namespace of this thread, and stays when the thread has left it. */
function stagedTrees(
  { workspace, user }: Plan,
  layer: PlannedLayer,
  sources: readonly TreeSource[],
  owned: OwnedTrees,
  undo: UndoStack,
): number[] {
  const merged = mergedIn(layer.dir)
  const { uid, gid } = lstatSync(workspace)
  const staging = new Staging(user, undo, layer, { uid, gid })
  try {
    const at = staging.stageLayer(layer.dir, workspace, owned.isMapped({ from: workspace, mode: 'rw' }))
    staging.show()
    return sources.map(source => {
      if (!isWithin(source.from, merged)) return owned.tree(source)
      const tree = detachedTree({ ...source, from: `${at}${source.from.slice(merged.length)}` })
      undo.push('a tree of the review layer', () => closeSync(tree))
      return tree
    })
  } finally {
    staging.leave()
  }
}

/** For an ordinary user: a child in namespaces of its own mounts the overlay, and hands the trees out. */
async function handedTrees(layer: PlannedLayer, sources: readonly TreeSource[]): Promise<readonly number[]> {
  const [ours, theirs] = descriptorPair()
  try {
    const ran = runWithDescriptors([...mountLayerFirst(layer), ...ownProgram(), CLONE_MODE], {
      descriptors: [theirs],
      input: JSON.stringify(sources),
      timeoutMs: TIME_LIMIT_MS,
    })
    // The child has its copy.
    close(theirs)
    const { code, stderr } = await ran
    const delivery = code === 0 ? receiveDescriptors(ours) : undefined
    if (delivery !== undefined) return delivery.descriptors
    throw new PenError('BACKEND', {
      what: `the review layer could not be mounted: ${printable(stderr.trim().split('\n').at(-1) ?? '', 400) || `exit ${code}`}`,
      at: layer.dir,
      hint: 'run it again; `pen doctor` tests the kernel',
    })
  } finally {
    close(ours)
  }
}
