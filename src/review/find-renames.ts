/** Pairs deleted files with new ones of the same content, for the list alone: accept applies both. */
import { errnoOf } from '../base/error.ts'
import type { Change } from './change.ts'
import { withContent } from './entry.ts'
import type { OpenDirectories } from './open-directories.ts'
import { NotAsShown } from './stage.ts'

const MOST_BYTES = 256 * 2 ** 20

/** From the path of a new file to the deleted path that had its content. */
export function findRenames(
  changes: readonly Change[],
  directories: OpenDirectories,
): ReadonlyMap<string, string> {
  const added = new Map<string, Change[]>()
  for (const change of changes) {
    const { kind, after } = change
    if (kind !== 'added' || after?.type !== 'file' || after.size === 0) continue
    const same = added.get(String(after.size))
    if (same === undefined) added.set(String(after.size), [change])
    else same.push(change)
  }
  const renames = new Map<string, string>()
  let left = MOST_BYTES
  for (const { kind, before, path } of changes) {
    const candidates = added.get(String(before?.size)) ?? []
    if (kind !== 'deleted' || before?.type !== 'file' || candidates.length === 0 || before.size > left)
      continue
    left -= before.size
    const content = contentOf(path, before, directories)
    const found = candidates.findIndex(({ after }) => after?.content === content)
    const [match] = found < 0 ? [] : candidates.splice(found, 1)
    if (match !== undefined) renames.set(match.path, path)
  }
  return renames
}

function contentOf(
  path: string,
  before: NonNullable<Change['before']>,
  directories: OpenDirectories,
): string | undefined {
  try {
    const { dir, name } = directories.at(path)
    return withContent(dir, name, before).content
  } catch (error) {
    if (errnoOf(error) === undefined && !(error instanceof NotAsShown)) throw error
    return undefined
  }
}
