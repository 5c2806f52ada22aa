/**
 * Trees that git ignores, or that a package manager made: they are one line of a list, so that a person sees the rest. Naming one
 * opens it. What git tracks is never in such a tree, and by its name alone nothing that was there before.
 */
import { type Change, type ChangeKind, isBelow } from './change.ts'

/** Directories that only tools fill. People have sources in `target`, `vendor` and `.yarn`. */
const GENERATED = new Set([
  'node_modules',
  'bower_components',
  '.venv',
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
  const hadFiles = new Set(
    changes.flatMap(({ kind, path }) => (kind === 'added' ? [] : (generatedTop(path) ?? []))),
  )
  const treeOf = (change: Change): string | undefined => {
    const { path, refused, conflict, attention } = change
    if (refused ?? conflict ?? change.protected ?? attention) return undefined
    const byName = generatedTop(path)
    const top = change.ignored ?? (byName !== undefined && hadFiles.has(byName) ? undefined : byName)
    return top !== undefined && !opened.some(one => one !== '.' && isBelow(one, top)) ? top : undefined
  }
  const trees = new Map<string, Change[]>()
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
