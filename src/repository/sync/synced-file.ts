/**
 * The refs that both repositories had at the last sync, on disk. It begins as the folded refs of the start, as they are: a
 * line per HEAD, then git's own `packed-refs` format. So the start writes it without parsing anything.
 */
import { existsSync, readFileSync } from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { OBJECT_ID } from '../copy/fold-refs.ts'
import type { Synced } from './plan-sync.ts'
import type { Head } from './state.ts'

const HEAD = 'head '
const STASH = 'stash '
const OPERATION = 'operation '

/** `heads` has the content of each `HEAD` file by record. The name of a record may have a space. */
export const syncedText = (
  heads: ReadonlyMap<string, string>,
  packed: Buffer,
  stashes: Iterable<string>,
): Buffer =>
  Buffer.concat([
    Buffer.from([...stashes].map(id => `${STASH}${id}\n`).join('')),
    Buffer.from(
      [...heads].map(([record, text]) => `${HEAD}${encodeURIComponent(record)} ${text.trim()}\n`).join(''),
    ),
    packed,
  ])

/** A submodule that was made in the sandbox has none yet. */
export function readSynced(file: string): Synced {
  if (!existsSync(file))
    return { refs: new Map(), heads: new Map(), stashes: new Set(), operations: new Map() }
  const refs = new Map<string, string>()
  const texts = new Map<string, string>()
  const stashes = new Set<string>()
  const operations = new Map<string, string>()
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const space = line.indexOf(' ')
    if (line.startsWith(HEAD)) {
      const end = line.indexOf(' ', HEAD.length)
      texts.set(decodeURIComponent(line.slice(HEAD.length, end)), line.slice(end + 1))
    } else if (line.startsWith(OPERATION)) {
      const [, record = '', operation = ''] = line.split(' ')
      operations.set(decodeURIComponent(record), operation)
    } else if (line.startsWith(STASH)) stashes.add(line.slice(STASH.length))
    else if (OBJECT_ID.test(line.slice(0, space))) refs.set(line.slice(space + 1), line.slice(0, space))
  }
  const heads = new Map([...texts].map(([record, text]) => [record, parseHead(text, refs)] as const))
  return { refs, heads, stashes, operations }
}

export function writeSynced(file: string, { refs, heads, stashes, operations = new Map() }: Synced): void {
  const texts = new Map(
    [...heads].map(([record, { branch, commit }]) => [
      record,
      branch === undefined ? `${commit}` : `ref: ${branch}`,
    ]),
  )
  const lines = [
    ...[...operations].map(([record, id]) => `${OPERATION}${encodeURIComponent(record)} ${id}\n`),
    ...[...refs].map(([name, id]) => `${id} ${name}\n`),
  ]
  writeFileAtomically(file, syncedText(texts, Buffer.from(lines.join('')), stashes).toString('utf8'))
}

function parseHead(text: string, refs: ReadonlyMap<string, string>): Head {
  const branch = text.startsWith('ref: ') ? text.slice(5) : undefined
  const commit = branch === undefined ? text : refs.get(branch)
  return { branch, commit, isBusy: false, isOpen: false }
}
