/** Finds the mount that contains a path. */
import { readKernelFile } from '../base/kernel/kernel-file.ts'

export interface MountEntry {
  readonly point: string
  readonly type: string
  readonly options: ReadonlySet<string>
}

export function parseMounts(text: string): MountEntry[] {
  return text.split('\n').flatMap(line => {
    const cut = line.indexOf(' - ')
    const head = line.slice(0, cut).split(' ')
    const [type = ''] = line.slice(cut + 3).split(' ')
    if (cut < 0 || head[4] === undefined) return []
    return [{ point: unescaped(head[4]), type, options: new Set((head[5] ?? '').split(',')) }]
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

export const mountsHere = (): MountEntry[] => parseMounts(readKernelFile('/proc/self/mountinfo', 'utf8'))

/** The kernel escapes spaces in paths as octal numbers. */
const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
