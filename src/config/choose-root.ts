/**
 * Chooses the directory of an MCP client from its roots. The directory in which `pen mcp` was started is the limit, and a
 * root only selects a directory inside it. The client is the user's program; the model behind it does not choose roots.
 */
import { realpathSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { PenError } from '../base/error.ts'
import { isWithin } from '../policy/files/path.ts'

export interface Bound {
  /** A real path: the project, or the directory in which the client started pen. */
  readonly directory: string
  /** Whether the user named it with `--project`. */
  readonly named: boolean
}

/** The limit itself, or a directory inside it. Without a root on this machine it is the limit. */
export function chooseRoot(bound: Bound, uris: readonly string[]): string {
  const roots = uris.flatMap(uri => directoryOf(uri) ?? [])
  if (roots.length === 0 || roots.some(root => isWithin(bound.directory, root))) return bound.directory
  const inside = roots.filter(root => isWithin(root, bound.directory))
  if (inside.length > 0) return inside.reduce(nearestAbove)
  if (bound.named) return bound.directory
  throw new PenError('USAGE', {
    what: `the client works in ${roots[0]}, but it started pen mcp in ${bound.directory}`,
    hint: `name the project in the client's settings: pen mcp --project ${roots[0]}`,
  })
}

/** Resolves links first, because a sandbox may have replaced a root with a link. */
function directoryOf(uri: string): string | undefined {
  try {
    const path = realpathSync(fileURLToPath(uri))
    return statSync(path).isDirectory() ? path : undefined
  } catch {
    return undefined
  }
}

/** The nearest common ancestor. */
function nearestAbove(one: string, other: string): string {
  const [words, others] = [one.split('/'), other.split('/')]
  const differ = words.findIndex((word, at) => word !== others[at])
  const same = differ < 0 ? words : words.slice(0, differ)
  return same.length === 1 ? '/' : same.join('/')
}
