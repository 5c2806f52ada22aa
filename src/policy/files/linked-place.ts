/** Paths in writable directories to which a place in the user's home links. */
import type { Layer, ProtectRule } from '../settings.ts'
import type { Source, Sourced } from '../source.ts'
import { isWithin } from './path.ts'

export interface LinkedPlace {
  /** As the user writes it: `~/.bashrc`. */
  readonly name: string
  /** The final target and every link on the way. It is the workspace itself when the whole workspace is read from there. */
  readonly paths: readonly string[]
}

const LAYER = 'your home ('

/** The place in the home that links to a protected path. */
export const linkedFrom = ({ layer }: Source): string | undefined =>
  layer.startsWith(LAYER) ? layer.slice(LAYER.length, -1) : undefined

/** Each protected path needs a mount. Above this number, protect their top-level directories instead, and then the workspace. */
const MAX_APART = 200

/** Skips a place that the user grants for writing by name. `trusted` holds only the user's own layers. */
export function protectLinked(
  linked: readonly LinkedPlace[],
  trusted: readonly Layer[],
  workspace: string,
): Sourced<ProtectRule>[] {
  const named = new Set(
    trusted.flatMap(
      ({ settings }) => settings['files.write']?.items.map(({ rule }) => rule.path as string) ?? [],
    ),
  )
  const names = new Map<string, string>()
  for (const { name, paths } of linked)
    if (!paths.some(path => named.has(path)))
      for (const path of paths) if (!names.has(path)) names.set(path, name)
  return [...fold(names, workspace)].map(([path, name]) => ({
    rule: { path },
    source: { layer: `${LAYER}${name})`, place: undefined },
  }))
}

function fold(names: ReadonlyMap<string, string>, workspace: string): ReadonlyMap<string, string> {
  if (names.size <= MAX_APART) return names
  const topOf = (path: string): string => {
    if (!isWithin(path, workspace)) return path
    const slash = path.indexOf('/', workspace.length + 1)
    return slash < 0 ? path : path.slice(0, slash)
  }
  const tops = new Map([...names].map(([path, name]) => [topOf(path), name]))
  if (tops.size <= MAX_APART) return tops
  return new Map([...names].map(([path, name]) => [isWithin(path, workspace) ? workspace : path, name]))
}
