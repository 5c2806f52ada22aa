/**
 * Which directory an MCP client works in, by its roots. The user's word comes first: what `pen mcp` was started with is the bound,
 * and a root only chooses a directory inside it. The client is the user's own program; the model behind it does not choose roots.
 */
import { realpathSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { PenError } from '../base/error.ts'
import { isWithin } from '../policy/files/path.ts'

export interface Bound {
  /** A real path: the project, or where the client started pen. */
  readonly directory: string
  /** Whether the user named it with `--project`. */
  readonly named: boolean
}

/** The directory to work in: the bound, or one inside it. Without a root on this machine it is the bound. */
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

/** Links are resolved first: a sandbox may have put one where a root was. */
function directoryOf(uri: string): string | undefined {
  try {
    const path = realpathSync(fileURLToPath(uri))
    return statSync(path).isDirectory() ? path : undefined
  } catch {
    return undefined
  }
}

/** The nearest directory above both, or one of them. */
function nearestAbove(one: string, other: string): string {
  const [words, others] = [one.split('/'), other.split('/')]
  const differ = words.findIndex((word, at) => word !== others[at])
  const same = differ < 0 ? words : words.slice(0, differ)
  return same.length === 1 ? '/' : same.join('/')
}
