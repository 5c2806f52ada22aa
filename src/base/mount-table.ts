/** The mounts of a process, as `/proc/PID/mountinfo` lists them. */
import { readKernelFile } from './kernel/kernel-file.ts'

export interface MountEntry {
  /** Of the file system, as `major:minor`. */
  readonly device: string
  /** The directory of the file system that is mounted. */
  readonly root: string
  readonly point: string
  readonly type: string
  readonly options: ReadonlySet<string>
}

export function parseMounts(text: string): MountEntry[] {
  return text.split('\n').flatMap(line => {
    const cut = line.indexOf(' - ')
    const [, , device, root, point, options = ''] = line.slice(0, cut).split(' ')
    const [type = ''] = line.slice(cut + 3).split(' ')
    if (cut < 0 || device === undefined || root === undefined || point === undefined) return []
    return [
      {
        device,
        root: unescapeMountField(root),
        point: unescapeMountField(point),
        type,
        options: new Set(options.split(',')),
      },
    ]
  })
}

/** Of mounts on the same deepest point the last one is on top. */
export function mountOf(path: string, mounts: readonly MountEntry[]): MountEntry | undefined {
  let found: MountEntry | undefined
  for (const mount of mounts) {
    const { point } = mount
    if (point !== '/' && path !== point && !path.startsWith(`${point}/`)) continue
    if (found === undefined || point.length >= found.point.length) found = mount
  }
  return found
}

/** The path of a file in its file system, whatever of that is mounted where. */
export const inFileSystem = (path: string, { root, point }: MountEntry): string =>
  `${trimmed(root)}${path.slice(trimmed(point).length)}` || '/'

/** The other paths at which bind mounts show a file or a directory. A read-only mount protects one path alone. */
export function otherPathsOf(path: string, mounts: readonly MountEntry[]): string[] {
  const own = mountOf(path, mounts)
  if (own === undefined) return []
  const file = inFileSystem(path, own)
  const found = mounts.flatMap(mount => {
    if (mount.device !== own.device) return []
    const other = isWithin(file, mount.root)
      ? `${trimmed(mount.point)}${file.slice(trimmed(mount.root).length)}`
      : isWithin(mount.root, file)
        ? mount.point
        : undefined
    // Another mount may hide it.
    return other !== undefined && mountOf(other, mounts) === mount ? [other] : []
  })
  return [...new Set(found)].filter(other => !isWithin(other, path))
}

const trimmed = (path: string): string => (path === '/' ? '' : path)

const isWithin = (path: string, tree: string): boolean =>
  path === tree || path.startsWith(`${trimmed(tree)}/`)

export const mountsHere = (): MountEntry[] => parseMounts(readKernelFile('/proc/self/mountinfo', 'utf8'))

/** The kernel writes blanks, line ends and backslashes in paths as three octal digits. */
export const unescapeMountField = (field: string): string =>
  field.includes('\\')
    ? field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
    : field
