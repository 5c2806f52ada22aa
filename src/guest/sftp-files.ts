/** The files of one SFTP session. Names are bytes. Results are the fields of an answer. */
import {
  type BigIntStats,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { type DirectoryEntry, directoryEntries } from '../base/beneath/directory-entries.ts'
import { errnoOf } from '../base/error.ts'
import {
  type Attributes,
  attributes,
  long,
  MAX_DATA,
  MAX_PACKET,
  number,
  text,
} from '../protocol/ssh-packets.ts'

export const STATUS = { ok: 0, end: 1, absent: 2, denied: 3, failed: 4, unsupported: 8 } as const

/** An answer that is no error of the kernel. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, message = '') {
    super(message)
    this.status = status
  }
}

interface Handle {
  readonly fd: number
  readonly appends: boolean
  readonly entries: Iterator<DirectoryEntry> | undefined
}

const READ = 1
const WRITE = 2
const APPEND = 4
const CREATE = 8
const TRUNCATE = 16
const EXCLUSIVE = 32

/** As many as a program may have open where nothing else is set, less some. */
const MOST_HANDLES = 1000
/** Entries in one answer. */
const LISTED = 100
const MODE = 0o7777
const SLASH = 0x2f

export class SftpFiles {
  readonly #handles = new Map<string, Handle>()
  #made = 0

  open(path: Buffer, flags: number, { mode = 0o666 }: Attributes): string {
    const has = (flag: number, value: number): number => ((flags & flag) === 0 ? 0 : value)
    const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_EXCL, O_APPEND } = constants
    const access = (flags & WRITE) === 0 ? O_RDONLY : (flags & READ) === 0 ? O_WRONLY : O_RDWR
    const appends = (flags & APPEND) !== 0
    const how = access | has(CREATE, O_CREAT) | has(TRUNCATE, O_TRUNC) | has(EXCLUSIVE, O_EXCL)
    return this.#keep(() => ({
      fd: openSync(named(path), how | (appends ? O_APPEND : 0), mode & MODE),
      appends,
      entries: undefined,
    }))
  }

  openDirectory(path: Buffer): string {
    const { O_RDONLY, O_DIRECTORY } = constants
    return this.#keep(() => {
      const fd = openSync(named(path), O_RDONLY | O_DIRECTORY)
      return { fd, appends: false, entries: directoryEntries(fd) }
    })
  }

  close(handle: string): void {
    const { fd, entries } = this.#handle(handle)
    this.#handles.delete(handle)
    entries?.return?.()
    closeSync(fd)
  }

  read(handle: string, from: bigint, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    const n = readSync(this.#handle(handle).fd, bytes, 0, length, from as never)
    if (n === 0 && length > 0) throw new Refused(STATUS.end)
    return bytes.subarray(0, n)
  }

  write(handle: string, at: bigint, bytes: Buffer): void {
    const { fd, appends } = this.#handle(handle)
    for (let done = 0; done < bytes.length; )
      done += writeSync(fd, bytes, done, bytes.length - done, appends ? null : Number(at) + done)
  }

  list(handle: string): Buffer[] {
    const { fd, entries } = this.#handle(handle)
    if (entries === undefined) throw new Refused(STATUS.failed, 'not a directory')
    const found: Buffer[] = []
    let count = 0
    for (let next = entries.next(); next.done !== true; next = entries.next()) {
      const stats = look(Buffer.concat([Buffer.from(`/proc/self/fd/${fd}/`), next.value.name]))
      if (stats !== undefined) {
        found.push(text(next.value.name), text(longName(next.value.name, stats)), attributesOf(stats))
        count++
      }
      if (count === LISTED) break
    }
    if (count === 0) throw new Refused(STATUS.end)
    return [number(count), ...found]
  }

  stat = (path: Buffer): Buffer => attributesOf(statSync(named(path), { bigint: true }))
  lstat = (path: Buffer): Buffer => attributesOf(lstatSync(named(path), { bigint: true }))
  fstat = (handle: string): Buffer => attributesOf(fstatSync(this.#handle(handle).fd, { bigint: true }))

  /** Of the file that a link leads to. */
  change(path: Buffer, { size, owner, mode, times }: Attributes): void {
    if (size !== undefined) truncateSync(named(path), Number(size))
    if (times !== undefined) utimesSync(named(path), times.accessed, times.modified)
    if (mode !== undefined) chmodSync(named(path), mode & MODE)
    if (owner !== undefined) chownSync(named(path), owner.uid, owner.gid)
  }

  changeOpen(handle: string, { size, owner, mode, times }: Attributes): void {
    const { fd } = this.#handle(handle)
    if (size !== undefined) ftruncateSync(fd, Number(size))
    if (times !== undefined) futimesSync(fd, times.accessed, times.modified)
    if (mode !== undefined) fchmodSync(fd, mode & MODE)
    if (owner !== undefined) fchownSync(fd, owner.uid, owner.gid)
  }

  changeLink(path: Buffer, { owner, mode, times, size }: Attributes): void {
    if (size !== undefined) throw new Refused(STATUS.failed)
    if (times !== undefined) lutimesSync(named(path), times.accessed, times.modified)
    // Linux has no mode of a link.
    if (mode !== undefined && !lstatSync(named(path)).isSymbolicLink()) chmodSync(named(path), mode & MODE)
    if (owner !== undefined) lchownSync(named(path), owner.uid, owner.gid)
  }

  unlink = (path: Buffer): void => unlinkSync(named(path))
  removeDirectory = (path: Buffer): void => rmdirSync(named(path))
  makeDirectory = (path: Buffer, { mode = 0o777 }: Attributes): void =>
    void mkdirSync(named(path), { mode: mode & MODE })
  replace = (from: Buffer, to: Buffer): void => renameSync(named(from), named(to))
  flush = (handle: string): void => fsyncSync(this.#handle(handle).fd)

  /** Never replaces a file, as the protocol says. */
  move(from: Buffer, to: Buffer): void {
    if (look(named(to)) !== undefined) throw new Refused(STATUS.failed, 'EEXIST')
    this.replace(from, to)
  }

  link(kind: 'hard' | 'symbolic', target: Buffer, path: Buffer): void {
    if (kind === 'hard') linkSync(named(target), named(path))
    else symlinkSync(target, named(path))
  }

  readLink = (path: Buffer): Buffer[] => nameOnly(readlinkSync(named(path), { encoding: 'buffer' }))

  /** The last name need not exist. */
  realPath(path: Buffer): Buffer[] {
    const real = (one: Buffer): Buffer => realpathSync(one, { encoding: 'buffer' })
    try {
      return nameOnly(real(named(path)))
    } catch (error) {
      const end = path.lastIndexOf(SLASH)
      const last = path.subarray(end + 1)
      if (errnoOf(error) !== 'ENOENT' || look(named(path)) !== undefined || last.length === 0) throw error
      const parent = real(named(path.subarray(0, Math.max(end, path[0] === SLASH ? 1 : 0))))
      return nameOnly(Buffer.concat([parent, Buffer.from(parent.length === 1 ? '' : '/'), last]))
    }
  }

  /** `~` is the home. Other users have none here. */
  expand(path: Buffer): Buffer[] {
    const given = path.toString('latin1')
    if (!given.startsWith('~')) return this.realPath(path)
    if (given !== '~' && !given.startsWith('~/')) throw new Refused(STATUS.absent, 'there is one user here')
    return this.realPath(Buffer.concat([Buffer.from(process.env['HOME'] ?? '/'), path.subarray(1)]))
  }

  limits = (): Buffer[] => [MAX_PACKET, MAX_DATA, MAX_DATA, MOST_HANDLES].map(bound => long(BigInt(bound)))

  #keep(make: () => Handle): string {
    if (this.#handles.size >= MOST_HANDLES) throw new Refused(STATUS.failed, 'too many open files')
    const name = String(++this.#made)
    this.#handles.set(name, make())
    return name
  }

  #handle(name: string): Handle {
    const handle = this.#handles.get(name)
    if (handle === undefined) throw new Refused(STATUS.failed, 'no such handle')
    return handle
  }
}

/** An empty name is the current directory. */
const named = (path: Buffer): Buffer => (path.length === 0 ? Buffer.from('.') : path)

const nameOnly = (name: Buffer): Buffer[] => [number(1), text(name), text(name), attributes({})]

function look(path: Buffer): BigIntStats | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false })
}

const seconds = (ns: bigint): number => Number(ns / 1_000_000_000n)

const attributesOf = ({ size, uid, gid, mode, atimeNs, mtimeNs }: BigIntStats): Buffer =>
  attributes({
    size,
    owner: { uid: Number(uid), gid: Number(gid) },
    mode: Number(mode),
    times: { accessed: seconds(atimeNs), modified: seconds(mtimeNs) },
  })

const KINDS: Readonly<Record<number, string>> = { 1: 'p', 2: 'c', 4: 'd', 6: 'b', 8: '-', 10: 'l', 12: 's' }

/** As `ls -l` prints it: what `sftp` shows. */
function longName(name: Buffer, { mode, nlink, uid, gid, size, mtimeNs }: BigIntStats): Buffer {
  const bits = Number(mode)
  const rights = [6, 3, 0].map(shift =>
    ['r', 'w', 'x'].map((letter, at) => ((bits >> shift) & (4 >> at) ? letter : '-')).join(''),
  )
  const date = new Date(seconds(mtimeNs) * 1000).toISOString().slice(0, 16).replace('T', ' ')
  const facts = [nlink, uid, gid, size].map(value => String(value).padStart(8)).join(' ')
  return Buffer.concat([Buffer.from(`${KINDS[bits >> 12] ?? '?'}${rights.join('')} ${facts} ${date} `), name])
}
