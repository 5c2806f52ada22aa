/**
 * The user's terminal, taken when it is ours to take: a job in the background may show things there, but whoever changes its
 * modes or reads its keys from there is stopped by the kernel, and the command with it.
 */
import { systemCall } from '../base/kernel/system-call.ts'
import { makeRaw } from './host-terminal.ts'

const TIOCGPGRP = 0x540f

/** Nobody is told that he was brought to the foreground. */
const LOOK_EVERY_MS = 150

/** Raw from now on, or from when the user brings the job to the foreground; then `onTaken` may read its keys. Returns what undoes it. */
export function takeTerminal(fd: number, onTaken: () => void): () => void {
  let restore = (): void => undefined
  let looking: ReturnType<typeof setInterval> | undefined
  const take = (): void => {
    if (!isInForeground(fd)) return
    clearInterval(looking)
    restore = makeRaw(fd)
    onTaken()
  }
  looking = setInterval(take, LOOK_EVERY_MS)
  take()
  return () => {
    clearInterval(looking)
    restore()
  }
}

/** True as well where it is not the one by which our jobs are controlled: then nobody is stopped for it. */
function isInForeground(fd: number): boolean {
  const group = new Int32Array(1)
  try {
    systemCall('ioctl', fd, TIOCGPGRP, new Uint8Array(group.buffer))
  } catch {
    return true
  }
  return group[0] === systemCall('getpgid', 0)
}
