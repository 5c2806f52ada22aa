/**
 * Copies a tree that a sandbox wrote, so that overlayfs takes the copy for the original: whiteouts, attributes, owners, modes, hard
 * links, holes and times. By descriptor and through no link, because a sandbox may write the tree meanwhile.
 */
import {
  type BigIntStats,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  linkSync,
  mkdirSync,
  openSync,
  readlinkSync,
  symlinkSync,
} from 'node:fs'
import { at, itself, LIST, openDirectory, withAccess } from '../../base/beneath/beneath.ts'
import { directoryEntries } from '../../base/beneath/directory-entries.ts'
import { lookAt } from '../../base/beneath/look-at.ts'
import { setModified } from '../../base/beneath/rename-at.ts'
import { errnoOf, PenError } from '../../base/error.ts'
import { isHostRoot } from '../../base/kernel/host-root.ts'
import { cString, systemCall, tryCall } from '../../base/kernel/system-call.ts'
import { copyContent } from '../digest.ts'
import { nameBytes, unlocked, withFile } from '../entry.ts'
import { isWhiteout } from '../overlay-marks.ts'

export interface TreeSize {
  readonly names: number
  /** On the disk, without reflinks. */
  readonly bytes: number
}

const FICLONE = 0x40049409
const MOST_LEVELS = 200
/** A path for a hard link is one path from the top. */
const LONGEST_PATH = 4000
const MODE = 0o7777n

/** `to` must not exist. The caller removes what a failure leaves. */
export function copyTree(from: string, to: string, most: TreeSize): TreeSize {
  mkdirSync(to, { mode: 0o700 })
  const [source, copy] = [openDirectory(from), openDirectory(to)]
  try {
    if (source === undefined || copy === undefined)
      throw new PenError('STATE', { what: 'a directory of the review layer is not there', at: from })
    const copier = new Copier(copy, most)
    copier.copyDirectory(source, copy, '', 1)
    return { names: copier.names, bytes: copier.bytes }
  } finally {
    for (const fd of [source, copy]) if (fd !== undefined) closeSync(fd)
  }
}

class Copier {
  names = 0
  bytes = 0
  readonly #top: number
  readonly #most: TreeSize
  /** The first copy of each file that has several names, as a path from the top. */
  readonly #links = new Map<bigint, string>()

  constructor(top: number, most: TreeSize) {
    this.#top = top
    this.#most = most
  }

  /** The mode and time come last: a new name would change the time, and a locked directory takes none. */
  copyDirectory(from: number, to: number, path: string, depth: number): void {
    if (depth > MOST_LEVELS) throw tooMuch('its directories are nested too deeply')
    const stats = fstatSync(from, { bigint: true })
    withAccess(from, LIST, () => {
      for (const { name: bytes } of directoryEntries(from)) {
        const name = bytes.toString('latin1')
        const inner = lookAt(at(from, bytes))
        if (inner !== undefined) this.#copy(from, to, name, inner, path, depth)
      }
      copyAttributes(from, to)
    })
    give(stats, (uid, gid) => chownSync(itself(to), uid, gid))
    setModified(to, '.', stats.mtimeNs)
    chmodSync(itself(to), Number(stats.mode & MODE))
  }

  #copy(from: number, to: number, name: string, stats: BigIntStats, above: string, depth: number): void {
    const place = at(to, nameBytes(name))
    const path = `${above}${name}`
    this.#count(stats)
    if (stats.isFile()) {
      this.#copyFile(from, to, name, stats, path)
      return
    }
    if (stats.isDirectory()) {
      mkdirSync(place, { mode: 0o700 })
      const [source, copy] = [openDirectory(at(from, nameBytes(name))), openDirectory(place)]
      try {
        if (source !== undefined && copy !== undefined)
          this.copyDirectory(source, copy, `${path}/`, depth + 1)
      } finally {
        for (const fd of [source, copy]) if (fd !== undefined) closeSync(fd)
      }
      return
    }
    // A whiteout is the only device that every user may make.
    if ((stats.isCharacterDevice() || stats.isBlockDevice()) && !isWhiteout(stats)) return
    if (stats.isSymbolicLink()) symlinkSync(readlinkSync(at(from, nameBytes(name)), 'buffer'), place)
    else systemCall('mknodat', to, cName(name), Number(stats.mode), Number(stats.rdev))
    give(stats, (uid, gid) => lchownSync(place, uid, gid))
    setModified(to, nameBytes(name), stats.mtimeNs)
  }

  #copyFile(from: number, to: number, name: string, stats: BigIntStats, path: string): void {
    const place = at(to, nameBytes(name))
    const first = stats.nlink > 1n ? this.#links.get(stats.ino) : undefined
    if (first !== undefined) {
      linkSync(at(this.#top, nameBytes(first)), place)
      return
    }
    if (stats.nlink > 1n && path.length < LONGEST_PATH) this.#links.set(stats.ino, path)
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
    const fd = openSync(place, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      unlocked(from, name, () =>
        withFile(from, name, (source, { size }) => {
          if (size > 0n && tryCall('ioctl', fd, FICLONE, source) !== 0) copyContent(source, fd, Number(size))
          copyAttributes(source, fd)
        }),
      )
      give(stats, (uid, gid) => fchownSync(fd, uid, gid))
      fchmodSync(fd, Number(stats.mode & MODE))
    } finally {
      closeSync(fd)
    }
    setModified(to, nameBytes(name), stats.mtimeNs)
  }

  #count({ blocks }: BigIntStats): void {
    this.names++
    this.bytes += Number(blocks) * 512
    if (this.names > this.#most.names) throw tooMuch(`it has more than ${this.#most.names} names`)
    if (this.bytes > this.#most.bytes) throw tooMuch('it is too large')
  }
}

const tooMuch = (why: string): PenError =>
  new PenError('LIMIT', {
    what: `the review layer cannot be copied: ${why}`,
    hint: 'pen accept or pen discard what is in it',
  })

const cName = (name: string): Uint8Array => Buffer.concat([Buffer.from(nameBytes(name)), Buffer.of(0)])

/** An ordinary user has no file of others in a layer, and may not give one to every group. */
function give({ uid, gid }: BigIntStats, act: (uid: number, gid: number) => void): void {
  if (!isHostRoot() && gid === BigInt(process.getgid?.() ?? 0)) return
  try {
    act(Number(uid), Number(gid))
  } catch (error) {
    if (isHostRoot() || errnoOf(error) !== 'EPERM') throw error
  }
}

const names = Buffer.alloc(64 * 1024)
const value = Buffer.alloc(64 * 1024)

/** What overlayfs marks, what programs set, and access lists. Others belong to the kernel. */
function copyAttributes(from: number, to: number): void {
  const [source, copy] = [cString(itself(from)), cString(itself(to))]
  const length = tryCall('listxattr', source, names, names.length)
  for (const name of names.subarray(0, Math.max(0, length)).toString('latin1').split('\0')) {
    if (!/^(?:user\.|system\.posix_acl_)/.test(name)) continue
    const bytes = Buffer.from(`${name}\0`, 'latin1')
    const size = tryCall('getxattr', source, bytes, value, value.length)
    if (size >= 0) systemCall('setxattr', copy, bytes, value, size, 0)
  }
}
