/**
 * Replaces the content of a file atomically. The broker writes to an unnamed file in the same directory and names it after
 * the last byte is on the disk. If pen is killed, the old file stays and nothing else is left.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  openSync,
  renameSync,
  type Stats,
  unlinkSync,
  write,
} from 'node:fs'
import { promisify } from 'node:util'
import { isAt } from '../base/beneath/open-beneath.ts'
import { errnoOf } from '../base/error.ts'
import { nameFile } from '../base/kernel/descriptor.ts'
import type { Exchange } from './exchange.ts'
import type { Access, Operation } from './operation.ts'
import { Refusal } from './refusal.ts'

const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY, O_RDONLY } = constants
const O_TMPFILE = 0o20000000 | O_DIRECTORY
const NEW_FILE = 0o644
const MIN_COUNTED = 4096

const writeAll = promisify(write)
const sync = promisify(fsync)

export function prepareWrite(access: Access, executable: boolean): Operation {
  const slash = access.path.lastIndexOf('/')
  const above = access.path.slice(0, slash) || '/'
  if (access.grant.kind === 'directory' && access.path === access.grant.path) throw new Refusal('directory')
  const dir = access.open(above)
  try {
    const stats = fstatSync(dir)
    if (!stats.isDirectory()) throw new Refusal(stats.isSymbolicLink() ? 'link' : 'not-directory')
    replaceable(access)
  } catch (error) {
    closeSync(dir)
    throw error
  }
  const target: WriteTarget = { access, dir, above, name: access.path.slice(slash + 1), executable }
  return { run: async exchange => await replace(target, exchange), close: () => closeSync(dir) }
}

interface WriteTarget {
  readonly access: Access
  readonly dir: number
  readonly above: string
  readonly name: string
  readonly executable: boolean
}

async function replace(target: WriteTarget, exchange: Exchange): Promise<void> {
  const { access, dir } = target
  const draft = new Draft(dir)
  try {
    let bytes = 0
    // An empty file takes disk space too.
    access.spend(MIN_COUNTED)
    for (;;) {
      const piece = await exchange.nextData()
      if (piece === undefined) break
      bytes += piece.length
      if (bytes > access.limits.maxWrite) throw new Refusal('too-large')
      access.spend(piece.length)
      access.check()
      await draft.append(piece)
      exchange.used(piece.length)
    }
    await sync(draft.fd)
    // Checks everything again just before the rename.
    access.check()
    const before = replaceable(access)
    requireSameDirectory(target)
    setMode(draft.fd, target, before)
    draft.replaceFile(target.name)
    await syncDirectory(dir)
  } finally {
    draft.close()
  }
}

/** The file that is replaced, if any. Refuses everything that must not be replaced. */
function replaceable({ open, path }: Access): Stats | undefined {
  let fd: number
  try {
    fd = open(path)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
  try {
    const stats = fstatSync(fd)
    if (stats.isSymbolicLink()) throw new Refusal('link')
    if (stats.isDirectory()) throw new Refusal('directory')
    if (!stats.isFile()) throw new Refusal('not-regular')
    if (stats.nlink > 1) throw new Refusal('hard-link')
    return stats
  } finally {
    closeSync(fd)
  }
}

/** Refuses when the directory was moved meanwhile, perhaps out of the grant. */
function requireSameDirectory({ access, dir, above }: WriteTarget): void {
  const now = access.open(above)
  try {
    if (!isAt(now, fstatSync(dir, { bigint: true }))) throw new Refusal('changed')
  } finally {
    closeSync(now)
  }
}

/** Keeps mode and owner of the old file. Only a grant with `execute` lets the sandbox make a file executable. */
function setMode(fd: number, { access, dir, executable }: WriteTarget, before: Stats | undefined): void {
  const kept = (before?.mode ?? NEW_FILE) & 0o777
  const runs = access.grant.execute && (executable || (kept & 0o111) !== 0)
  const owner = before ?? fstatSync(dir)
  if (process.geteuid?.() === 0) fchownSync(fd, owner.uid, owner.gid)
  fchmodSync(fd, runs ? (kept & 0o666) | ((kept & 0o444) >> 2) : kept & 0o666)
}

async function syncDirectory(dir: number): Promise<void> {
  try {
    const fd = openSync(`/proc/self/fd/${dir}`, O_RDONLY | O_DIRECTORY)
    try {
      await sync(fd)
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    // The directory is unreadable, or the file system cannot sync directories. The rename is done.
    if (errnoOf(error) === undefined) throw error
  }
}

/** The new content before the rename. */
class Draft {
  readonly fd: number
  readonly #dir: number
  readonly #temporary = `.pen-${crypto.randomUUID()}`
  #isNamed: boolean

  constructor(dir: number) {
    this.#dir = dir
    const unnamed = openUnnamed(dir)
    this.#isNamed = unnamed === undefined
    this.fd = unnamed ?? openSync(this.#at(this.#temporary), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  }

  async append(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; )
      done += (await writeAll(this.fd, bytes, done, bytes.length - done, null)).bytesWritten
  }

  /** A rename replaces a link that appears at this moment, and does not follow it. */
  replaceFile(name: string): void {
    if (!this.#isNamed) nameFile(this.fd, this.#dir, this.#temporary)
    this.#isNamed = true
    renameSync(this.#at(this.#temporary), this.#at(name))
    this.#isNamed = false
  }

  close(): void {
    closeSync(this.fd)
    if (!this.#isNamed) return
    try {
      unlinkSync(this.#at(this.#temporary))
    } catch {
      // A program on the host has removed it already.
    }
  }

  #at(name: string): string {
    return `/proc/self/fd/${this.#dir}/${name}`
  }
}

/** Undefined when the file system has no O_TMPFILE. */
function openUnnamed(dir: number): number | undefined {
  try {
    return openSync(`/proc/self/fd/${dir}`, O_TMPFILE | O_RDWR, 0o600)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'EOPNOTSUPP' || errno === 'ENOTSUP' || errno === 'EISDIR' || errno === 'EINVAL')
      return undefined
    throw error
  }
}
