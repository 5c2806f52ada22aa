/** A change of a review layer as JSON. */
import { pathText } from '../../repository/sync/changed-paths.ts'
import type { Change } from '../../review/change.ts'
import type { Entry } from '../../review/entry.ts'

export function changeData(change: Change, renamedFrom?: string) {
  const { path, kind, before, after, refused = null, conflict = null, attention = null } = change
  return {
    path: pathText(path),
    /** For a path that is not UTF-8: its bytes. */
    bytes: isUtf8(path) ? null : Buffer.from(path, 'latin1').toString('base64'),
    kind,
    renamedFrom: renamedFrom === undefined ? null : pathText(renamedFrom),
    before: entryData(before),
    after: entryData(after),
    refused,
    conflict,
    protected: change.protected ?? null,
    attention,
  }
}

const isUtf8 = (path: string): boolean => Buffer.from(pathText(path)).toString('latin1') === path

const entryData = (entry: Entry | undefined) =>
  entry === undefined
    ? null
    : { type: entry.type, mode: entry.mode.toString(8), size: entry.size, content: entry.content ?? null }
