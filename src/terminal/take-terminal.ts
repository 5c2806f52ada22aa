/**
 * Takes over the user's terminal when pen is in the foreground. A background job may print. If it changes modes or reads keys, the
 * kernel stops it, and the command with it.
 */
import { systemCall } from '../base/kernel/system-call.ts'
import { makeRaw } from './host-terminal.ts'

const TIOCGPGRP = 0x540f

/** A process gets no signal when it moves to the foreground, so pen polls. */
const POLL_MS = 150

/** Makes the terminal raw now or when pen moves to the foreground. `onTaken` then reads its keys. Returns a function that restores it. */
export function takeTerminal(fd: number, onTaken: () => void): () => void {
  let restore = (): void => undefined
  let timer: ReturnType<typeof setInterval> | undefined
  const take = (): void => {
    if (!isInForeground(fd)) return
    clearInterval(timer)
    restore = makeRaw(fd)
    onTaken()
  }
  timer = setInterval(take, POLL_MS)
  take()
  return () => {
    clearInterval(timer)
    restore()
  }
}

/** Also true for a terminal that is not our controlling terminal: the kernel stops no job for it. */
function isInForeground(fd: number): boolean {
  const group = new Int32Array(1)
  try {
    systemCall('ioctl', fd, TIOCGPGRP, new Uint8Array(group.buffer))
  } catch {
    return true
  }
  return group[0] === systemCall('getpgid', 0)
}
