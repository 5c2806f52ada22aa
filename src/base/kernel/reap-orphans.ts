/**
 * The first process of a container, and a subreaper, adopt all orphans and must reap them. Children of the runtime are
 * left to the runtime, which waits for them itself.
 */
import { closeSync } from 'node:fs'
import { tryCall } from './system-call.ts'

const P_ALL = 0
const WNOHANG = 1
const LOOK_ONLY = WNOHANG | 4 | 0x0100_0000 // WEXITED, WNOWAIT
/** struct siginfo: the pid follows three numbers and padding. */
const SIGINFO = { numbers: 32, pid: 4 }
/** Far longer than the runtime needs. Processes behind the runtime's own in the queue wait this long. */
const AGAIN_MS = 20
const LOOK_MS = 1000

/** Until this process exits. `isOwn` is true for children that the runtime waits for. */
export function reapOrphans(isOwn: (pid: number) => boolean): void {
  // Elsewhere no process adopts orphans.
  if (process.platform !== 'linux') return
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
  // Reap what ended before the listener was added.
  reap()
  if (!tellsOfEndsByDescriptor()) setInterval(reap, LOOK_MS)
}

/** On a kernel without pidfds, such as gVisor of 2022, the runtime handles SIGCHLD itself, and no listener gets it. */
function tellsOfEndsByDescriptor(): boolean {
  const fd = tryCall('pidfd_open', process.pid, 0)
  if (fd >= 0) closeSync(fd)
  return fd >= 0
}
