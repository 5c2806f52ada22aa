/** One change that a sandbox made in a review layer. Paths, targets and names are hostile bytes, in latin1. */
import { sha256 } from '../base/sha256.ts'
import type { Entry } from './entry.ts'

export type ChangeKind = 'added' | 'changed' | 'deleted' | 'mode' | 'type'

export interface Change {
  /** Relative to the project. `.` is the project itself. */
  readonly path: string
  readonly kind: ChangeKind
  /** In the project. */
  readonly before: Entry | undefined
  /** In the layer. */
  readonly after: Entry | undefined
  /** Why pen never applies it. */
  readonly refused?: string
  /** Why it is applied only when the path is named. */
  readonly protected?: string
  /** The user changed the project's entry since the layer was made. */
  readonly conflict?: string
  /** The clean result of a merge. `after` describes it. */
  readonly merged?: Uint8Array
  /** git ignores this path: it is the change's own, or of a directory above it. Never on what git tracks. */
  readonly ignored?: string
  /** Why the user should look at it first. */
  readonly attention?: string
}

/** Whether `path` is `above` or lies below it. */
export const isBelow = (path: string, above: string): boolean =>
  above === '.' || path === above || path.startsWith(`${above}/`)

/** What the user was shown. Any edit on either side changes it. */
export const digestOf = (changes: readonly Change[], commits: readonly string[]): string =>
  `sha256:${sha256(
    changes
      .map(({ path, kind, before, after }) => JSON.stringify([path, kind, ofProject(before), ofLayer(after)]))
      .concat(commits.map(line => JSON.stringify(line)))
      .join('\n'),
  )}`

const ofProject = (entry: Entry | undefined): string =>
  entry === undefined
    ? ''
    : entry.type === 'directory'
      ? `${entry.type} ${entry.mode}`
      : `${entry.type} ${entry.mode} ${entry.size} ${entry.ino} ${entry.ctimeNs}`

const ofLayer = (entry: Entry | undefined): string =>
  entry === undefined ? '' : `${entry.type} ${entry.mode} ${entry.content ?? ''}`
