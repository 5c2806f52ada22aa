import { basename, dirname } from '../../base/posix-path.ts'
import type { ProgramFiles, Status } from './files.ts'

export interface Chain {
  readonly links: readonly { readonly at: string; readonly to: string }[]
  readonly file: string
  readonly status: Status
}

const MAX_LINKS = 40

export const inDirectory = (directory: string, name: string): string =>
  `${directory === '/' ? '' : directory}/${name}`

/**
 * Follows links one by one to the file, each at a path without links in its parents. Undefined when there is no file.
 */
export function follow(files: ProgramFiles, path: string): Chain | undefined {
  const links: { at: string; to: string }[] = []
  for (let next = path; links.length < MAX_LINKS; ) {
    // A directory.
    if (/(^|\/)\.{0,2}$/.test(next)) return undefined
    const above = files.real(dirname(next))
    if (above === undefined) return undefined
    const at = inDirectory(above, basename(next))
    const status = files.look(at)
    if (status?.kind !== 'link') return status?.kind === 'file' ? { links, file: at, status } : undefined
    const to = files.readLink(at)
    if (to === undefined) return undefined
    links.push({ at, to })
    // The text stays as it is: behind a link, `..` is not the parent in the text.
    next = to.startsWith('/') ? to : inDirectory(above, to)
  }
  return undefined
}
