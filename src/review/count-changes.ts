/** How much a layer changes, for the end of a run: what `pen diff` would list, as far as that takes no time. */
import { layerPaths, readLayer } from './layer.ts'
import { readChanges, TooMany } from './read-changes.ts'

/** Comparing these takes some 50 ms. */
const COMPARED = { maxEntries: 2000, maxBytes: 16 * 2 ** 20 }

export function reviewLines(stateDir: string): readonly string[] {
  const layer = readLayer(stateDir)
  if (layer === undefined) return []
  const count = layer.kind === 'copy' ? undefined : countChanges(layerPaths(stateDir).upper, layer.workspace)
  if (count === '') return []
  const was = 'the project is as it was'
  return count === undefined
    ? [`review: ${was}; pen diff shows what the sandbox changed, pen accept applies it`]
    : [`review: ${count}, and ${was}; pen diff shows them, pen accept applies them`]
}

/** Empty without a change. Undefined when only a longer comparison would tell. */
function countChanges(upper: string, workspace: string): string | undefined {
  try {
    const { length } = readChanges(upper, workspace, COMPARED)
    return length === 0 ? '' : `${length} ${length === 1 ? 'change' : 'changes'}`
  } catch (error) {
    if (!(error instanceof TooMany)) throw error
    return error.found < 2 ? undefined : `at least ${error.found} changes`
  }
}
