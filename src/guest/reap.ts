/**
 * The first process of a container is left the children of all others, and has to take note of their end: nobody else will.
 * Those that the runtime started are the runtime's: it wants to hear of their end itself.
 */
import { closeSync } from 'node:fs'
import { tryCall } from '../base/kernel/system-call.ts'

const P_ALL = 0
const WNOHANG = 1
const LOOK_ONLY = WNOHANG | 4 | 0x0100_0000 // WEXITED, WNOWAIT
/** struct siginfo: the pid stands behind three numbers and what aligns them. */
const SIGINFO = { numbers: 32, pid: 4 }
/** The runtime needs far less; what stands behind its own in the queue waits for so long. */
const AGAIN_MS = 20
const LOOK_MS = 1000

/** For the rest of this process's life. `isOwn`: which ones the runtime waits for. */
export function reapOrphans(isOwn: (pid: number) => boolean): void {
  let again: ReturnType<typeof setTimeout> | undefined
  const reap = (): void => {
    clearTimeout(again)
    const info = new Int32Array(SIGINFO.numbers)
    for (;;) {
      info.fill(0)
      if (tryCall('waitid', P_ALL, 0, new Uint8Array(info.buffer), LOOK_ONLY, 0) < 0) return
      const pid = info[SIGINFO.pid] ?? 0
      if (pid === 0) return
      if (isOwn(pid)) break
      tryCall('wait4', pid, 0, WNOHANG, 0)
    }
    again = setTimeout(reap, AGAIN_MS)
  }
  process.on('SIGCHLD', reap)
  // Of what ended before anybody listened.
  reap()
  if (!tellsOfEndsByDescriptor()) setInterval(reap, LOOK_MS)
}

/** Where a kernel has none, as gVisor's of 2022, the runtime takes the signal for itself, and nobody else hears it. */
function tellsOfEndsByDescriptor(): boolean {
  const fd = tryCall('pidfd_open', process.pid, 0)
  if (fd >= 0) closeSync(fd)
  return fd >= 0
}
