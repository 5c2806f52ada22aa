/** The workspace through a review layer: what is writable comes from the merged tree, and the rest from the host. */
import { type HostPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { HostFacts } from './facts.ts'
import { mergedIn } from './plan.ts'

type Facts = Pick<HostFacts, 'layer'>

/** The host's path for a mount. Protected places are the host's own files. No grant may contain the project: see `policy/files/`. */
export function throughLayer(
  path: string,
  mode: 'ro' | 'rw',
  { workspace }: Pick<Policy, 'workspace'>,
  { layer }: Facts,
): HostPath {
  if (layer === undefined || !isWithin(path, workspace)) return path as HostPath
  if (mode === 'ro' && path !== workspace) return path as HostPath
  return `${mergedIn(layer)}${path.slice(workspace.length)}` as HostPath
}

/** A directory of the project cannot be renamed in a layer: the kernel refuses it. */
export const isPinned = (path: string, { workspace }: Pick<Policy, 'workspace'>, { layer }: Facts): boolean =>
  layer === undefined || !isWithin(path, workspace)

/** The host's trees that grow when the sandbox writes to a path. Which of the two depends on the kind of layer. */
export function growsInLayer(
  path: HostPath,
  { workspace }: Pick<Policy, 'workspace'>,
  { layer }: Facts,
): readonly HostPath[] {
  if (layer === undefined || !isWithin(path, workspace)) return [path]
  return [`${layer}/upper` as HostPath, mergedIn(layer)]
}
