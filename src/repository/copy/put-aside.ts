/**
 * Puts a directory aside that git cannot use any more. What is left of it may hold commits. So the newest one with an object
 * that the host lacks stays, and no more than that one: a sandbox can damage its directory in each run.
 */
import { closeSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { openDirectory } from '../../base/beneath/beneath.ts'
import { directoryEntries } from '../../base/beneath/directory-entries.ts'
import { lookAt } from '../../base/beneath/look-at.ts'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import { HostGit } from '../git/host-git.ts'
import { OBJECT_ID } from './fold-refs.ts'

/** With more files than this, it has something. */
const MAX_LISTED = 20_000
const MARK = '.damaged-'

/** `host` is the host's git directory. Returns the end of a line for the user. */
export async function putAside(entry: string, host: string): Promise<string> {
  if (!(await hasMore(`${entry}/dir`, host, `${entry}/empty`))) {
    removeTree(`${entry}/dir`)
    return 'the old one had nothing that the host does not have'
  }
  // Below a directory of pen's own: a file named `synced` in it must not make it the entry of a run.
  const aside = `${entry}${MARK}${crypto.randomUUID().slice(0, 8)}`
  mkdirSync(aside, { mode: 0o700 })
  renameSync(`${entry}/dir`, `${aside}/git`)
  const top = dirname(entry)
  const older = readdirSync(top).filter(name => name.includes(MARK) && name !== basename(aside))
  for (const name of older) removeTree(`${top}/${name}`)
  const removed = older.length === 0 ? '' : ', in place of an older one'
  return `what is left of the old one is in ${aside}/git${removed}`
}

/** Packs are the sandbox's, and the host's git must not open them. A submodule's objects are not compared. */
async function hasMore(dir: string, host: string, empty: string): Promise<boolean> {
  const ids: string[] = []
  try {
    if (lookAt(`${dir}/objects`)?.isSymbolicLink()) return true
    for (const path of files(dir)) {
      const id = /^objects\/([0-9a-f]{2}\/[0-9a-f]+)$/.exec(path)?.[1]?.replace('/', '') ?? ''
      if (OBJECT_ID.test(id)) ids.push(id)
      else if (/(?:^|\/)objects\/(?!info\/)/.test(path)) return true
      if (ids.length > MAX_LISTED) return true
    }
    using git = new HostGit(host, empty)
    const { code, stdout } = await git.run({ script: 'git cat-file --batch-check', input: ids.join('\n') })
    return code !== 0 || stdout.includes(' missing\n')
  } catch {
    // A locked directory, too many files, or no repository on the host.
    return true
  }
}

/** Of objects, below the directory and those of its submodules. No link is followed. */
function* files(dir: string): Generator<string, void, void> {
  let left = MAX_LISTED
  const queue = ['objects', 'modules']
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const fd = openDirectory(`${dir}/${next}`)
    if (fd === undefined) continue
    try {
      for (const { name, type } of directoryEntries(fd)) {
        if (--left < 0) throw new Error('too many')
        const path = `${next}/${name}`
        if (type !== 'directory') yield path
        else if (path !== 'objects/info') queue.push(path)
      }
    } finally {
      closeSync(fd)
    }
  }
}
