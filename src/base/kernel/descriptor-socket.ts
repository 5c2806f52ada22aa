/** A Unix socket by which one pen process passes descriptors to another (see pass-descriptors.ts). */
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs'
import { basename, dirname } from '../posix-path.ts'
import { close } from './descriptor.ts'
import { AF, SOCK } from './socket.ts'
import { succeeded, systemCall, tryCall } from './system-call.ts'

export interface DescriptorListener {
  /** A connection that has already arrived. The caller closes it. */
  accept(): number | undefined
  /** Stops listening and removes the path. */
  close(): void
}

const SEQPACKET = SOCK.seqpacket | SOCK.cloexec
/** Including the closing NUL. */
const MOST_BYTES = 108

export function listenForDescriptors(path: string): DescriptorListener {
  // A path through the open directory is short enough for sockaddr_un, however long the real path is.
  const directory = openSync(dirname(path), 'r')
  const fd = systemCall('socket', AF.unix, SEQPACKET | SOCK.nonblock, 0)
  const name = nameOf(`/proc/self/fd/${directory}/${basename(path)}`)
  succeeded(`bind ${path}`, tryCall('bind', fd, name, name.length))
  succeeded(`listen at ${path}`, tryCall('listen', fd, 1))
  // The other end may be another user. The modes of the directories above decide who can connect.
  chmodSync(path, 0o666)
  closeSync(directory)
  let open = true
  return {
    accept: () => {
      const accepted = tryCall('accept4', fd, null, null, SOCK.cloexec)
      return accepted < 0 ? undefined : accepted
    },
    close: () => {
      if (!open) return
      open = false
      close(fd)
      rmSync(path, { force: true })
    },
  }
}

export function connectForDescriptors(path: string): number {
  const fd = systemCall('socket', AF.unix, SEQPACKET, 0)
  const name = nameOf(path)
  succeeded(`connect to ${path}`, tryCall('connect', fd, name, name.length))
  return fd
}

/** struct sockaddr_un { u16 family; char path[108] } */
function nameOf(path: string): Uint8Array {
  const bytes = new TextEncoder().encode(`${path}\0`)
  if (bytes.length > MOST_BYTES) throw new RangeError(`the name of a socket is too long: ${path}`)
  const name = new Uint8Array(2 + bytes.length)
  new DataView(name.buffer).setUint16(0, AF.unix, true)
  name.set(bytes, 2)
  return name
}
