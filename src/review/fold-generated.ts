/** Trees that tools generate: they are one line of a list, so that a person sees the rest. Naming one opens it. */
import { type Change, type ChangeKind, isBelow } from './change.ts'

/** Directories that package managers and builds fill. */
const GENERATED = new Set([
  'node_modules',
  'bower_components',
  'target',
  '.venv',
  'venv',
  '__pycache__',
  '.tox',
  '.mypy_cache',
  '.pytest_cache',
  '.ruff_cache',
  '.gradle',
  '.next',
  '.nuxt',
  '.turbo',
  '.parcel-cache',
  '.pnpm-store',
  '.yarn',
])
/** A few changes in such a directory are listed like all others. */
const FEW = 10

export interface GeneratedTree {
  readonly path: string
  readonly changes: readonly Change[]
}

export interface Folded {
  readonly listed: readonly Change[]
  readonly trees: readonly GeneratedTree[]
}

/** What needs the user's eyes is never folded. `opened` are paths that the user named. */
export function foldGenerated(changes: readonly Change[], opened: readonly string[]): Folded {
  const trees = new Map<string, Change[]>()
  const treeOf = (change: Change): string | undefined => {
    const { path, refused, conflict, attention } = change
    if (refused ?? conflict ?? change.protected ?? attention) return undefined
    const top = generatedTop(path)
    return top !== undefined && !opened.some(one => one !== '.' && isBelow(one, top)) ? top : undefined
  }
  for (const change of changes) {
    const top = treeOf(change)
    if (top === undefined) continue
    const inside = trees.get(top)
    if (inside === undefined) trees.set(top, [change])
    else inside.push(change)
  }
  const folded = [...trees].filter(([, inside]) => inside.length > FEW)
  const tops = new Set(folded.map(([path]) => path))
  return {
    listed: changes.filter(change => !tops.has(treeOf(change) ?? '')),
    trees: folded.map(([path, inside]) => ({ path, changes: inside })),
  }
}

function generatedTop(path: string): string | undefined {
  for (let from = 0; ; ) {
    const end = path.indexOf('/', from)
    const name = end < 0 ? path.slice(from) : path.slice(from, end)
    if (GENERATED.has(name)) return end < 0 ? path : path.slice(0, end)
    if (end < 0) return undefined
    from = end + 1
  }
}

export function countKinds(changes: readonly Change[]): ReadonlyMap<ChangeKind, number> {
  const counts = new Map<ChangeKind, number>()
  for (const { kind } of changes) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}
