/** The files that a survey of programs reads: the host's own, or those of an image. A broken path counts as absent. */
import { lstatSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { type ProgramHead, readProgramHead } from '../../base/program-head.ts'

export type FileKind = 'file' | 'directory' | 'link' | 'other'

export interface Status {
  readonly kind: FileKind
  readonly mode: number
  readonly links: number
  readonly size: number
  /** Equal only for hard links of one file. */
  readonly id: string
}

export interface ProgramFiles {
  /** Describes the path itself, also when it is a link. */
  look(path: string): Status | undefined
  readLink(path: string): string | undefined
  list(directory: string): readonly { readonly name: string; readonly kind: FileKind }[]
  /** The path with all links resolved. */
  real(path: string): string | undefined
  head(file: string): ProgramHead
  /** True when two files may be copies of one file. Undefined where hard links stay hard links. */
  readonly same: ((one: string, other: string) => boolean) | undefined
}

interface Kinds {
  isFile(): boolean
  isDirectory(): boolean
  isSymbolicLink(): boolean
}

export const kindOf = (stats: Kinds): FileKind =>
  stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'link' : 'other'

/** Programs that only root can install. */
export const HOST_FILES: ProgramFiles = {
  look: path =>
    unlessAbsent(() => {
      const stats = lstatSync(path)
      const { mode, nlink, size, dev, ino } = stats
      return { kind: kindOf(stats), mode, links: nlink, size, id: `${dev} ${ino}` }
    }),
  readLink: path => unlessAbsent(() => readlinkSync(path)),
  list: directory =>
    unlessAbsent(() =>
      readdirSync(directory, { withFileTypes: true }).map(entry => ({
        name: entry.name,
        kind: kindOf(entry),
      })),
    ) ?? [],
  real: path => unlessAbsent(() => realpathSync(path)),
  head: readProgramHead,
  same: undefined,
}

/** Absent, dangling or unreadable: not a program of this machine. */
function unlessAbsent<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch {
    return undefined
  }
}
