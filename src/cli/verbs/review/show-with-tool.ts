import { closeSync, mkdirSync, mkdtempSync, openSync, writeFileSync } from 'node:fs'
import { removeTree } from '../../../base/beneath/remove-tree.ts'
import { errnoOf, errnoText, PenError } from '../../../base/error.ts'
import { runOnTerminal } from '../../../base/spawn.ts'
import type { Change } from '../../../review/change.ts'
import { copyContent } from '../../../review/digest.ts'
import { type Entry, pathBelow, unlocked, withFile } from '../../../review/entry.ts'
import { type OpenDirectories, parentOf } from '../../../review/open-directories.ts'

/**
 * Copies both versions of every changed file into two directories, and opens them in a program of the user's. There are no
 * links in them: the target of a link is the text of a file.
 */
export async function showWithTool(
  tool: string,
  changes: readonly Change[],
  directories: OpenDirectories,
  options: { readonly parent: string; readonly env: Readonly<Record<string, string | undefined>> },
): Promise<void> {
  const top = mkdtempSync(`${options.parent}/shown-`)
  try {
    for (const change of changes) {
      if (change.refused !== undefined) continue
      copySide(`${top}/before`, change, change.before, directories)
      copySide(`${top}/after`, change, change.after, directories)
    }
    for (const side of ['before', 'after']) mkdirSync(`${top}/${side}`, { recursive: true })
    const argv = ['/bin/sh', '-c', `${tool} "$1" "$2"`, 'sh', 'before', 'after']
    const { code } = await runOnTerminal(argv, { env: options.env, cwd: top })
    if (code === 127)
      throw new PenError('MISSING_TOOL', {
        what: `${tool} was not found`,
        hint: 'install it, or name another program',
      })
  } finally {
    removeTree(top)
  }
}

/** Paths of changes have no `..`, so what is written stays below `side`. */
function copySide(
  side: string,
  change: Change,
  entry: Entry | undefined,
  directories: OpenDirectories,
): void {
  if (entry?.type !== 'file' && entry?.type !== 'link') return
  const to = pathBelow(side, change.path)
  try {
    mkdirSync(pathBelow(side, parentOf(change.path)), { recursive: true })
    if (entry.type === 'link') writeFileSync(to, `link to ${entry.content ?? ''}\n`, 'latin1')
    else if (change.merged !== undefined && entry === change.after) writeFileSync(to, change.merged)
    else copyFile(to, change, entry, directories)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined) throw error
    if (!MEANWHILE.has(errno)) throw notCopied(error)
  }
}

/** A file and a directory have changed places, or it was edited at this moment, or pen may not read it. */
const MEANWHILE = new Set([
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'EEXIST',
  'EINVAL',
  'ELOOP',
  'ENXIO',
  'EACCES',
  'EPERM',
])

/** The program would show half a file. */
const notCopied = (error: unknown): PenError =>
  new PenError('STATE', {
    what: `the files could not be copied for the program (${errnoText(error)})`,
    hint: 'free some space on the disk of ~/.pen, or name fewer files: pen diff --tool COMMAND FILE',
  })

function copyFile(to: Buffer, { path, after }: Change, entry: Entry, directories: OpenDirectories): void {
  const { dir, layer, name } = directories.find(path)
  const from = entry === after ? layer : dir
  if (from === undefined) return
  const fd = openSync(to, 'wx', 0o600)
  try {
    unlocked(from, name, () =>
      withFile(from, name, (source, { size }) => void copyContent(source, fd, Number(size))),
    )
  } finally {
    closeSync(fd)
  }
}
