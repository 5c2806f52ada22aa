/** Finds the other paths at which bind mounts show a file or a directory. A read-only mount protects one path alone. */

interface Mount {
  readonly device: string
  /** The directory of the file system that is mounted. */
  readonly root: string
  readonly point: string
}

/** `table` is `/proc/self/mountinfo`. */
export function otherPathsOf(path: string, table: string): string[] {
  const mounts = table.split('\n').flatMap(parseMount)
  const own = mountOf(path, mounts)
  if (own === undefined) return []
  const inFileSystem = `${trimmed(own.root)}${path.slice(trimmed(own.point).length)}`
  const found = mounts.flatMap(mount => {
    if (mount.device !== own.device) return []
    const other = isWithin(inFileSystem, mount.root)
      ? `${trimmed(mount.point)}${inFileSystem.slice(trimmed(mount.root).length)}`
      : isWithin(mount.root, inFileSystem)
        ? mount.point
        : undefined
    // Another mount may hide it.
    return other !== undefined && mountOf(other, mounts) === mount ? [other] : []
  })
  return [...new Set(found)].filter(other => !isWithin(other, path))
}

function parseMount(line: string): Mount[] {
  const [, , device, root, point] = line.split(' ')
  if (device === undefined || root === undefined || point === undefined) return []
  return [{ device, root: unescaped(root), point: unescaped(point) }]
}

/** Of mounts on the same deepest point the last one is on top. */
function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let found: Mount | undefined
  for (const mount of mounts)
    if (isWithin(path, mount.point) && mount.point.length >= (found?.point.length ?? 0)) found = mount
  return found
}

const trimmed = (path: string): string => (path === '/' ? '' : path)

const isWithin = (path: string, tree: string): boolean =>
  path === tree || path.startsWith(`${trimmed(tree)}/`)

/** The kernel writes blanks in paths as octal numbers. */
const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
