/**
 * Services of the host that bound their sockets by a relative name, as `--bind unix:app.sock` does. The kernel tells that name, and
 * which file it is, but not where: it is looked for from the directories that processes are in.
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
const ATTRIBUTE = { name: 0, file: 1 }

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
  allPids().flatMap(pid => {
    try {
      return [readlinkSync(`/proc/${pid}/cwd`)]
    } catch {
      return []
    }
  })

function boundByRelativeName(): Bound[] {
  let socket: number | undefined
  const found: Bound[] = []
  try {
    socket = openNetlink(NETLINK.sockDiag)
    for (const { type, body } of dump('list the sockets', socket, request())) {
      const bound = type === SOCK_DIAG_BY_FAMILY ? readBound(body.subarray(ANSWER)) : undefined
      if (bound !== undefined) found.push(bound)
    }
  } catch {
    // The kernel has no unix_diag.
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
  view.setUint32(12, (1 << ATTRIBUTE.name) | (1 << ATTRIBUTE.file), true)
  const to = new MessageWriter(REQUEST + 16)
  to.message(SOCK_DIAG_BY_FAMILY, NLM_F.request | NLM_F.dump, 0, () => to.raw(body))
  return to.written()
}

function readBound(attributes: Uint8Array): Bound | undefined {
  let name = ''
  let inode: number | undefined
  for (const [type, bytes] of readAttributes(attributes)) {
    const value = Buffer.from(bytes)
    if (type === ATTRIBUTE.name) name = value.toString().replace(/\0$/, '')
    if (type === ATTRIBUTE.file && value.length >= 4) inode = value.readUInt32LE(0)
  }
  const isRelative = name !== '' && !name.startsWith('/') && !name.startsWith('\0')
  return isRelative && inode !== undefined ? { name, inode } : undefined
}
