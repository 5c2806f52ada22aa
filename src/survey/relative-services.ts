/**
 * Services of the host that bound their sockets by a relative name, as `--bind unix:app.sock` does. The kernel tells that name, and
 * which file it is, but not where: it is looked for from the directories that processes are in.
 */
import { closeSync, lstatSync, readdirSync, readlinkSync, readSync, writeSync } from 'node:fs'
import { systemCall } from '../base/kernel/system-call.ts'
import { resolve } from '../base/posix-path.ts'
import { isWithin } from '../policy/files/path.ts'

const AF_NETLINK = 16
const SOCK_RAW_CLOEXEC = 3 | 0o2000000
const NETLINK_SOCK_DIAG = 4
const SOCK_DIAG_BY_FAMILY = 20
/** `struct nlmsghdr`, then `struct unix_diag_req`, or `struct unix_diag_msg` and attributes. */
const HEADER = 16
const REQUEST = HEADER + 24
const ATTRIBUTES_AT = HEADER + 16
const ATTRIBUTE = { name: 0, file: 1 }
const NLM_F_REQUEST_DUMP = 0x301

interface Bound {
  readonly name: string
  readonly inode: number
}

/** Paths below the roots. */
export function relativeServices(roots: readonly string[]): readonly string[] {
  const bound = boundByRelativeName()
  if (bound.length === 0) return []
  const places = [...new Set([...roots, ...directoriesOfProcesses()])]
  return bound.flatMap(({ name, inode }) =>
    places.map(place => resolve(place, name)).filter(path => isBelow(path, roots) && inodeOf(path) === inode),
  )
}

const isBelow = (path: string, roots: readonly string[]): boolean => roots.some(root => isWithin(path, root))

/** The kernel tells 32 bits of it. */
function inodeOf(path: string): number | undefined {
  try {
    const stats = lstatSync(path, { bigint: true })
    return stats.isSocket() ? Number(stats.ino & 0xffff_ffffn) : undefined
  } catch {
    return undefined
  }
}

/** Of those that we may ask. */
const directoriesOfProcesses = (): string[] =>
  readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      return [readlinkSync(`/proc/${name}/cwd`)]
    } catch {
      return []
    }
  })

function boundByRelativeName(): Bound[] {
  let fd: number | undefined
  try {
    fd = systemCall('socket', AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_SOCK_DIAG)
    writeSync(fd, request())
    return readAnswers(fd)
  } catch {
    // A kernel that does not tell.
    return []
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

function request(): Uint8Array {
  const message = new Uint8Array(REQUEST)
  const view = new DataView(message.buffer)
  view.setUint32(0, REQUEST, true)
  view.setUint16(4, SOCK_DIAG_BY_FAMILY, true)
  view.setUint16(6, NLM_F_REQUEST_DUMP, true)
  message[HEADER] = 1 // AF_UNIX
  view.setUint32(HEADER + 4, 0xffff_ffff, true) // in any state
  view.setUint32(HEADER + 12, (1 << ATTRIBUTE.name) | (1 << ATTRIBUTE.file), true)
  return message
}

function readAnswers(fd: number): Bound[] {
  const out: Bound[] = []
  const buffer = Buffer.alloc(65_536)
  for (;;) {
    const size = readSync(fd, buffer)
    if (size === 0) return out
    for (let at = 0; at + HEADER <= size; ) {
      const length = buffer.readUInt32LE(at)
      if (buffer.readUInt16LE(at + 4) !== SOCK_DIAG_BY_FAMILY || length < HEADER) return out
      const found = readBound(buffer.subarray(at + ATTRIBUTES_AT, at + length))
      if (found !== undefined) out.push(found)
      at += (length + 3) & ~3
    }
  }
}

function readBound(attributes: Buffer): Bound | undefined {
  let name = ''
  let inode: number | undefined
  for (let at = 0; at + 4 <= attributes.length; ) {
    const length = attributes.readUInt16LE(at)
    const value = attributes.subarray(at + 4, at + length)
    const type = attributes.readUInt16LE(at + 2)
    if (type === ATTRIBUTE.name) name = value.toString().replace(/\0$/, '')
    if (type === ATTRIBUTE.file && value.length >= 4) inode = value.readUInt32LE(0)
    at += Math.max(4, (length + 3) & ~3)
  }
  const isRelative = name !== '' && !name.startsWith('/') && !name.startsWith('\0')
  return isRelative && inode !== undefined ? { name, inode } : undefined
}
