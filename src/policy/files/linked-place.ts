/** What a place of the user's home leads to in the directories that a sandbox may write. */
import type { Layer, ProtectRule } from '../settings.ts'
import type { Source, Sourced } from '../source.ts'
import { isWithin } from './path.ts'

export interface LinkedPlace {
  /** As the user writes it: `~/.bashrc`. */
  readonly name: string
  /** Where it ends, and the links on the way; the workspace itself when all of it is read there. */
  readonly paths: readonly string[]
}

const LAYER = 'your home ('

/** The place of the home that leads to a protected one. */
export const linkedFrom = ({ layer }: Source): string | undefined =>
  layer.startsWith(LAYER) ? layer.slice(LAYER.length, -1) : undefined

/** A mount for each that is there: beyond this many the directories at the top that hold them are protected, and then the workspace. */
const MAX_APART = 200

/** A place that the user grants for writing by its own name is theirs to open. The layers are the user's own. */
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
