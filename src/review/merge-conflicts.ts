/**
 * Merges files that both the user and the sandbox changed, where git has the version before both. A merge without a conflict
 * becomes the change; the user is shown its result.
 */
import { type BoxWorld, runInBox } from '../backend/box.ts'
import { BOX_PATH } from '../repository/git/git-box.ts'
import { GIT_ENVIRONMENT } from '../repository/git/git-environment.ts'
import type { GitRunner } from '../repository/git/git-runner.ts'
import type { Change } from './change.ts'
import type { OpenDirectories } from './open-directories.ts'
import { readSides } from './read-sides.ts'

export interface MergeOptions {
  readonly world: BoxWorld
  /** The host's repository. */
  readonly host: GitRunner
  /** The commit of HEAD when the layer was made. */
  readonly base: string
  readonly directories: OpenDirectories
}

const MERGED = 'merged with your own change'
/** Each merge takes a box. With more conflicts than this the user changed the project as a whole. */
const MOST = 50
const BLOB = 'git cat-file blob "$(cat)"'
/** Writes three files, of given sizes. The last one is the rest of the input. */
const MERGE = `cd /tmp && head -c "$1" >ours && head -c "$2" >base && cat >theirs &&
  exec git merge-file -p ours base theirs`

/** A merge that leaves the project's file as it is, is no change. */
export async function mergeConflicts(
  changes: readonly Change[],
  options: MergeOptions,
): Promise<readonly Change[]> {
  let left = MOST
  const out: Change[] = []
  for (const change of changes) {
    const canMerge =
      change.conflict !== undefined && change.kind === 'changed' && change.refused === undefined
    const merged = canMerge && left-- > 0 ? await merge(change, options) : undefined
    if (merged === undefined) out.push(change)
    else if (merged !== 'same') out.push(merged)
  }
  return out
}

async function merge(change: Change, options: MergeOptions): Promise<Change | 'same' | undefined> {
  const { after, path } = change
  const sides = readSides(change, options.directories)
  if (after?.type !== 'file' || sides?.before === undefined || sides.after === undefined) return undefined
  const { before: ours, after: theirs } = sides
  const blob = await options.host({ script: BLOB, input: Buffer.from(`${options.base}:${path}`, 'latin1') })
  if (blob.code !== 0) return undefined
  const answer = await runInBox(options.world, {
    argv: ['/bin/sh', '-c', MERGE, 'pen', String(ours.length), String(blob.stdout.length)],
    env: { ...GIT_ENVIRONMENT, PATH: BOX_PATH, HOME: '/tmp' },
    steps: [],
    input: Buffer.concat([ours, blob.stdout, theirs]),
  })
  if (answer.code !== 0) return undefined
  const { conflict: _, ...rest } = change
  if (answer.stdout.equals(ours))
    return change.before?.mode === after.mode ? 'same' : { ...rest, kind: 'mode', attention: MERGED }
  const content = new Bun.CryptoHasher('sha256').update(answer.stdout).digest('hex')
  return {
    ...rest,
    after: { ...after, size: answer.stdout.length, content, mtimeNs: BigInt(Date.now()) * 1_000_000n },
    merged: answer.stdout,
    attention: MERGED,
  }
}
