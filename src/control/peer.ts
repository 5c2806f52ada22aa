/** Who is at the other end of a Unix socket, by the kernel's word. */
import { SOL } from '../base/kernel/socket.ts'
import { tryCall } from '../base/kernel/system-call.ts'

const SO_PEERCRED = 17

/** This user, or root, who could be this user. False when the kernel does not tell. */
export function isOurUser(fd: number | undefined): boolean {
  if (fd === undefined) return false
  // struct ucred { pid, uid, gid }
  const peer = new Uint32Array(3)
  const size = new Uint32Array([peer.byteLength])
  if (tryCall('getsockopt', fd, SOL.socket, SO_PEERCRED, peer, size) !== 0) return false
  return peer[1] === process.geteuid?.() || peer[1] === 0
}
