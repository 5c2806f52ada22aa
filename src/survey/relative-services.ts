/**
 * Host services that bound their socket by a relative name, as `--bind unix:app.sock` does. The kernel reports the name and
 * the inode, but no directory. So the socket is searched in the current directories of all processes.
 */
import { lstatSync, readlinkSync } from 'node:fs'
import { close } from '../base/kernel/descriptor.ts'
import { dump, MessageWriter, NETLINK, NLM_F, openNetlink, readAttributes } from '../base/kernel/netlink.ts'
import { allPids } from '../base/kernel/processes.ts'
import { AF } from '../base/kernel/socket.ts'
import { resolve } from '../base/posix-path.ts'
import { isWithin } from '../policy/files/path.ts'

const SOCK_DIAG_BY_FAMILY = 20
/** Size of `struct unix_diag_req`, and of the `struct unix_diag_msg` that answers it. */
const REQUEST = 24
const ANSWER = 16
const ATTRIBUTE = { name: 0, file: 1, uid: 7 }
const SHOW = { name: 1 << 0, file: 1 << 1, uid: 1 << 6 }

export interface Bound {
  readonly name: string
  /** Undefined when the kernel does not report it: then every socket of that name counts. */
  readonly inode: number | undefined
  /** Undefined when the kernel does not report it. */
  readonly uid: number | undefined
}

export interface RelativeServices {
  /** Paths below the roots. */
  readonly paths: readonly string[]
  /** Names of the user's services whose sockets were not found: the process has changed its directory since. */
  readonly unlocated: readonly string[]
}

/** `names` are the relative names in `/proc/net/unix`, for a kernel without unix_diag. */
export function relativeServices(
  roots: readonly string[],
  names: readonly string[],
  ask: () => readonly Bound[] | undefined = boundByRelativeName,
): RelativeServices {
  const bound = ask() ?? [...new Set(names)].map(name => ({ name, inode: undefined, uid: undefined }))
  const places = bound.length === 0 ? [] : [...new Set([...roots, ...directoriesOfProcesses()])]
  const paths: string[] = []
  const unlocated: string[] = []
  for (const { name, inode, uid } of bound) {
    const found = places.map(place => resolve(place, name)).filter(path => isSocket(path, inode))
    paths.push(...found.filter(path => isBelow(path, roots)))
    // pen cannot see where other users' processes are. Few of them can bind a socket in this user's project.
    if (found.length === 0 && (uid ?? process.getuid?.()) === process.getuid?.()) unlocated.push(name)
  }
  return { paths, unlocated }
}

const isBelow = (path: string, roots: readonly string[]): boolean => roots.some(root => isWithin(path, root))

/** The kernel reports 32 bits of the inode. */
function isSocket(path: string, inode: number | undefined): boolean {
  try {
    const stats = lstatSync(path, { bigint: true })
    return stats.isSocket() && (inode === undefined || Number(stats.ino & 0xffff_ffffn) === inode)
  } catch {
    return false
  }
}

/** Of the processes that pen may examine. */
const directoriesOfProcesses = (): string[] =>
  allPids().flatMap(pid => {
    try {
      return [readlinkSync(`/proc/${pid}/cwd`)]
    } catch {
      return []
    }
  })

/** Undefined for a kernel without unix_diag. */
function boundByRelativeName(): readonly Bound[] | undefined {
  let socket: number | undefined
  const found: Bound[] = []
  try {
    socket = openNetlink(NETLINK.sockDiag)
    for (const { type, body } of dump('list the sockets', socket, request())) {
      const bound = type === SOCK_DIAG_BY_FAMILY ? readBound(body.subarray(ANSWER)) : undefined
      if (bound !== undefined) found.push(bound)
    }
  } catch {
    return undefined
  } finally {
    if (socket !== undefined) close(socket)
  }
  return found
}

function request(): Uint8Array {
  const body = new Uint8Array(REQUEST)
  const view = new DataView(body.buffer)
  body[0] = AF.unix
  // Sockets in every state.
  view.setUint32(4, 0xffff_ffff, true)
  view.setUint32(12, SHOW.name | SHOW.file | SHOW.uid, true)
  const to = new MessageWriter(REQUEST + 16)
  to.message(SOCK_DIAG_BY_FAMILY, NLM_F.request | NLM_F.dump, 0, () => to.raw(body))
  return to.written()
}

function readBound(attributes: Uint8Array): Bound | undefined {
  let name = ''
  let inode: number | undefined
  let uid: number | undefined
  for (const [type, bytes] of readAttributes(attributes)) {
    const value = Buffer.from(bytes)
    if (type === ATTRIBUTE.name) name = value.toString().replace(/\0$/, '')
    if (type === ATTRIBUTE.file && value.length >= 4) inode = value.readUInt32LE(0)
    if (type === ATTRIBUTE.uid && value.length >= 4) uid = value.readUInt32LE(0)
  }
  const isRelative = name !== '' && !name.startsWith('/') && !name.startsWith('\0')
  return isRelative && inode !== undefined ? { name, inode, uid } : undefined
}
