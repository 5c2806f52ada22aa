/**
 * Where programs are looked for inside, and what tells a toolchain where it is installed. Both are the host user's own, as far
 * as they name what the sandbox sees: nothing else of the host's environment is told by them.
 */
import { decideFile } from '../policy/files/decide-file.ts'
import { type HostPath, isWithin, normalize } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { SystemEntry } from './facts.ts'
import { SYSTEM_PATH } from './system-view.ts'

export interface SearchPath {
  /** All of it, in order. */
  readonly all: readonly string[]
  /** What of it nobody inside can write: where the tools that a policy lists are looked for. */
  readonly readOnly: readonly string[]
}

/**
 * What stands before the system's directories in the user's PATH stands before them inside, the rest behind. Where a link leads
 * to what the sandbox sees, that place has its own name there: `locate` tells it.
 */
export function searchPath(
  hostPath: string,
  policy: Policy,
  system: readonly SystemEntry[],
  locate: (path: string) => string,
): SearchPath {
  const entries = hostPath.split(':')
  const firstOfSystem = entries.findIndex(isOfSystem)
  const [before, after] =
    firstOfSystem < 0 ? [entries, []] : [entries.slice(0, firstOfSystem), entries.slice(firstOfSystem)]
  const shown = (path: string): string[] => {
    // In one spelling: a path with `..` in it could be another place inside than it is outside.
    if (isOfSystem(path) || !path.startsWith('/') || path !== normalize(path)) return []
    const place = sees(path, policy, system) ? path : locate(path)
    return sees(place, policy, system) ? [place] : []
  }
  const all = [...new Set([...before.flatMap(shown), ...SYSTEM_PATH, ...after.flatMap(shown)])]
  return { all, readOnly: all.filter(path => isOfSystem(path) || isInSystem(path, system)) }
}

const isOfSystem = (path: string): boolean => SYSTEM_PATH.includes(path)

const sees = (path: string, policy: Policy, system: readonly SystemEntry[]): boolean =>
  isInSystem(path, system) || decideFile(policy, path as HostPath, 'read').ok

const isInSystem = (path: string, system: readonly SystemEntry[]): boolean =>
  system.some(part => part.kind === 'tree' && isWithin(path, part.path) && !isWithin(part.path, '/etc'))

/** A toolchain that finds its parts by the home of whoever calls it: inside that is another. */
const INSTALLED_AT: readonly (readonly [variable: string, belowHome: string])[] = [
  ['ASDF_DATA_DIR', '.asdf'],
  ['FNM_DIR', '.local/share/fnm'],
  ['NVM_DIR', '.nvm'],
  ['PYENV_ROOT', '.pyenv'],
  ['RBENV_ROOT', '.rbenv'],
  ['RUSTUP_HOME', '.rustup'],
  ['VOLTA_HOME', '.volta'],
]

/** The user's own word, where the sandbox sees that place; else the usual place, where it does. */
export function toolchainVariables(
  env: Readonly<Record<string, string | undefined>>,
  home: string,
  system: readonly SystemEntry[],
): ReadonlyMap<string, string> {
  const found = INSTALLED_AT.flatMap(([name, belowHome]) => {
    const place = [env[name], `${home}/${belowHome}`].find(
      path => path !== undefined && path === normalize(path) && isInSystem(path, system),
    )
    return place === undefined ? [] : [[name, place] as const]
  })
  return new Map(found)
}
