/** How much a layer changes, in one quick walk. What equals the project counts too: `pen diff` compares. */
import { closeSync } from 'node:fs'
import { at, LIST, openDirectory, withAccess } from '../base/beneath/beneath.ts'
import { directoryEntries } from '../base/beneath/directory-entries.ts'
import { layerPaths, readLayer } from './layer.ts'

const MOST = 100_000
const MOST_LEVELS = 200

interface ChangeCount {
  readonly files: number
  /** There may be more. */
  readonly isCut: boolean
}

/** For the end of a run. */
export function reviewLines(stateDir: string): readonly string[] {
  const changes = countChanges(stateDir)
  if (changes === undefined)
    return ['review: the project is as it was; pen diff shows what changed in its copy']
  const { files, isCut } = changes
  if (files === 0) return []
  const count = `${isCut ? 'more than ' : ''}${files} ${files === 1 ? 'file' : 'files'}`
  return [
    `review: ${count} changed, and the project is as it was; pen diff shows them, pen accept applies them`,
  ]
}

/** Undefined without a layer, and where only a comparison with the whole project would tell. */
function countChanges(stateDir: string): ChangeCount | undefined {
  if (readLayer(stateDir)?.kind !== 'overlay') return undefined
  const top = openDirectory(layerPaths(stateDir).upper)
  if (top === undefined) return undefined
  const files = below(top, 0, MOST)
  return { files: Math.min(files, MOST), isCut: files > MOST }
}

/** Closes the descriptor. Counts files, links and deletions, and directories with none of them. */
function below(dir: number, depth: number, most: number): number {
  let files = 0
  try {
    withAccess(dir, LIST, () => {
      for (const { name, type } of directoryEntries(dir)) {
        const inner = type === 'directory' && depth < MOST_LEVELS ? openDirectory(at(dir, name)) : undefined
        files += inner === undefined ? 1 : Math.max(1, below(inner, depth + 1, most - files))
        if (files > most) return
      }
    })
  } finally {
    closeSync(dir)
  }
  return files
}
