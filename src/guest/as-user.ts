/**
 * The exec daemon is root of its container, without the capability to pass over file modes: a directory that is the user's alone
 * is closed to it. So it looks for programs, opens terminals and starts commands with the user's rights over files, and
 * what it makes meanwhile (pipes, pseudo-terminals) is the user's. Its own id, which protects it from signals and tracing,
 * does not change for a moment.
 */
import { tryCall } from '../base/kernel/system-call.ts'

export interface User {
  readonly uid: number
  readonly gid: number
}

/** `act` must not wait for anything: the rights are this thread's, and other work would run with them. */
export function asUser<T>(user: User | undefined, act: () => T): T {
  if (user === undefined) return act()
  tryCall('setfsgid', user.gid)
  tryCall('setfsuid', user.uid)
  try {
    return act()
  } finally {
    tryCall('setfsuid', 0)
    tryCall('setfsgid', 0)
  }
}
