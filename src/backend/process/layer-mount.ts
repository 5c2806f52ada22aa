/**
 * Mounts a review layer: an overlay with the project as its lower directory. Names in the options are relative to the layer, so that no path
 * has to be escaped, and none is in the mount table that the sandbox reads.
 */
import { findTool, missingTool } from '../../base/find-tool.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import type { PlannedLayer } from '../../plan/plan.ts'

/**
 * `userxattr`: marks that an ordinary user may set, and root too, so that there is one kind of layer. `volatile`: no sync of the whole layer
 * at the end of a run. `pen accept` syncs what it takes over.
 */
export const LAYER_OPTIONS = 'userxattr,volatile'

const OPTIONS = `${LAYER_OPTIONS},lowerdir=lower,upperdir=upper,workdir=work`

const MOUNT_AND_RUN = `cd "$1" && "$2" -i -n -t overlay pen -o ${OPTIONS} merged && cd / && shift 2 && exec "$@"`

/** Words in front of a program that starts with the layer mounted, in a mount namespace of its own. */
export function mountLayerFirst(layer: PlannedLayer | undefined): readonly string[] {
  if (layer?.kind !== 'overlay') return []
  // In a namespace around the sandbox's own one: the sandbox has no power over the mount.
  const user = isHostRoot() ? [] : ['--user', '--map-root-user']
  const unshare = [tool('unshare'), ...user, '--mount', '--']
  return [...unshare, tool('sh'), '-c', MOUNT_AND_RUN, 'sh', layer.dir, tool('mount')]
}

function tool(name: string): string {
  const path = findTool(name)
  if (path === undefined) throw missingTool(name, 'install util-linux and a POSIX shell')
  return path
}
