/**
 * PATH inside, and the variables with install directories of toolchains. Both come from the host user's environment, reduced to
 * what the sandbox can see. No other host variable is disclosed by them.
 */
import { decideFile } from '../policy/files/decide-file.ts'
import { type HostPath, isWithin, normalize } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { SystemEntry } from './facts.ts'
import { SYSTEM_PATH } from './system-view.ts'

interface SearchPath {
  /** All directories, in order. */
  readonly all: readonly string[]
  /** The directories that the sandbox cannot write. Listed tools are looked up only there. */
  readonly readOnly: readonly string[]
}

/**
 * Directories before the system's in the user's PATH stay before them inside; the others come after. `locate` resolves a link
 * whose target the sandbox can see.
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
    // Only normalized paths: a path with `..` could be another directory inside than outside.
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

/** Toolchains that find their parts below the caller's home. Inside, the home is another directory. */
const INSTALLED_AT: readonly (readonly [variable: string, belowHome: string])[] = [
  ['ASDF_DATA_DIR', '.asdf'],
  ['FNM_DIR', '.local/share/fnm'],
  ['NVM_DIR', '.nvm'],
  ['PYENV_ROOT', '.pyenv'],
  ['RBENV_ROOT', '.rbenv'],
  ['RUSTUP_HOME', '.rustup'],
  ['VOLTA_HOME', '.volta'],
]

/** The user's own value if the sandbox can see that path, else the default path if it can see that one. */
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
