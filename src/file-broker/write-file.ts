/**
 * New content for a file, whole or not at all: it is written to a file without a name in the same directory, which gets its
 * name when the last byte is on the disk. Whoever is killed meanwhile leaves the old file, and nothing beside it.
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
import { identityOf } from '../base/beneath/open-beneath.ts'
import { errnoOf } from '../base/error.ts'
import { nameFile } from '../base/kernel/file.ts'
import type { Exchange } from './exchange.ts'
import type { Access, Operation } from './operation.ts'
import { Refusal } from './refusal.ts'

const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY, O_RDONLY } = constants
const O_TMPFILE = 0o20000000 | O_DIRECTORY
const NEW_FILE = 0o644
const SMALLEST = 4096

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
  const place: Place = { access, dir, above, name: access.path.slice(slash + 1), executable }
  return { run: async exchange => await replace(place, exchange), close: () => closeSync(dir) }
}

interface Place {
  readonly access: Access
  readonly dir: number
  readonly above: string
  readonly name: string
  readonly executable: boolean
}

async function replace(place: Place, exchange: Exchange): Promise<void> {
  const { access, dir } = place
  const draft = new Draft(dir)
  try {
    let bytes = 0
    // A file takes room on the disk although nothing is in it.
    access.spend(SMALLEST)
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
    // The last moment: what held at the beginning has to hold now.
    access.check()
    const before = replaceable(access)
    requireSameDirectory(place)
    setMode(draft.fd, place, before)
    draft.takePlace(place.name)
    await syncDirectory(dir)
  } finally {
    draft.close()
  }
}

/** What stands there now, if it is something that new content may take the place of. */
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

/** A directory that was moved away meanwhile, perhaps out of what is granted, gets nothing. */
function requireSameDirectory({ access, dir, above }: Place): void {
  const now = access.open(above)
  try {
    const a = identityOf(now)
    const b = identityOf(dir)
    if (a.dev !== b.dev || a.ino !== b.ino) throw new Refusal('changed')
  } finally {
    closeSync(now)
  }
}

/** The sandbox never decides who may run it: only a grant that says so lets it ask, and no file gets another's rights. */
function setMode(fd: number, { access, dir, executable }: Place, before: Stats | undefined): void {
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
    // A directory that may not be listed, or a file system without a directory sync: the rename stands.
    if (errnoOf(error) === undefined) throw error
  }
}

/** The new content before it takes the old one's place. */
class Draft {
  readonly fd: number
  readonly #dir: number
  readonly #temporary = `.pen-${crypto.randomUUID()}`
  #isNamed: boolean

  constructor(dir: number) {
    this.#dir = dir
    const nameless = openNameless(dir)
    this.#isNamed = nameless === undefined
    this.fd = nameless ?? openSync(this.#at(this.#temporary), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  }

  async append(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; )
      done += (await writeAll(this.fd, bytes, done, bytes.length - done, null)).bytesWritten
  }

  /** A rename replaces a link that was put there in this very moment; it follows none. */
  takePlace(name: string): void {
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
      // Somebody on the host was faster.
    }
  }

  #at(name: string): string {
    return `/proc/self/fd/${this.#dir}/${name}`
  }
}

/** Undefined where the file system has no files without a name. */
function openNameless(dir: number): number | undefined {
  try {
    return openSync(`/proc/self/fd/${dir}`, O_TMPFILE | O_RDWR, 0o600)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'EOPNOTSUPP' || errno === 'ENOTSUP' || errno === 'EISDIR' || errno === 'EINVAL')
      return undefined
    throw error
  }
}
