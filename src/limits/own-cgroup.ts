/** pen's own place in the cgroup hierarchies. A sandbox goes below it, so that limits on pen apply to it too. */
import { readKernelFile } from '../base/kernel/kernel-file.ts'
import { unescapeMountField } from '../base/mount-table.ts'

/** The kernel's files. Tests inject their own, with their own mount point. */
export interface CgroupView {
  /** `/proc/self/cgroup` */
  readonly own: string
  /** `/proc/self/mountinfo` */
  readonly mounts: string
}

export interface OwnCgroups {
  /** Maps a controller to the directory of pen's own cgroup. */
  readonly v1: ReadonlyMap<string, string>
  /** The directory of pen's own v2 cgroup, and the topmost one that this mount shows. */
  readonly v2: { readonly dir: string; readonly top: string } | undefined
}

export const kernelView = (): CgroupView => ({
  own: readKernelFile('/proc/self/cgroup', 'utf8'),
  mounts: readKernelFile('/proc/self/mountinfo', 'utf8'),
})

/** Parses without regular expressions, because this runs once before every sandbox and compiling one costs more. */
export function findOwnCgroups(view: CgroupView = kernelView()): OwnCgroups {
  const paths = new Map<string, string>()
  for (const line of view.own.split('\n')) {
    const first = line.indexOf(':')
    const second = line.indexOf(':', first + 1)
    if (second < 0 || line[second + 1] !== '/') continue
    const path = line.slice(second + 1)
    for (const controller of line.slice(first + 1, second).split(',')) paths.set(controller, path)
  }
  const v1 = new Map<string, string>()
  let v2: OwnCgroups['v2']
  for (let cut = view.mounts.indexOf(MARK); cut >= 0; cut = view.mounts.indexOf(MARK, cut + 1)) {
    const end = view.mounts.indexOf('\n', cut)
    const head = view.mounts.slice(view.mounts.lastIndexOf('\n', cut) + 1, cut).split(' ')
    const root = unescapeMountField(head[3] ?? '')
    const point = unescapeMountField(head[4] ?? '')
    const [type, , options = ''] = view.mounts.slice(cut + 3, end < 0 ? undefined : end).split(' ')
    if (type === 'cgroup2') {
      const dir = below(point, root, paths.get(''))
      if (dir !== undefined) v2 = { dir, top: point }
    } else
      for (const controller of options.split(',')) {
        const dir = below(point, root, paths.get(controller))
        if (dir !== undefined && !v1.has(controller)) v1.set(controller, dir)
      }
  }
  return { v1, v2 }
}

const MARK = ' - cgroup'

/** In a container the mount may show only a part of the hierarchy, or a part without pen. */
function below(point: string, root: string, path: string | undefined): string | undefined {
  if (path === undefined || path.startsWith('/..')) return undefined
  if (root === '/') return path === '/' ? point : `${point}${path}`
  if (path !== root && !path.startsWith(`${root}/`)) return undefined
  return `${point}${path.slice(root.length)}`
}
