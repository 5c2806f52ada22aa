/**
 * The exec daemon is root of its container without CAP_DAC_OVERRIDE, so it cannot enter a private directory of the
 * user. It looks for programs, opens terminals and starts commands with the user's file rights. Pipes and
 * pseudo-terminals that it makes then belong to the user. Its real uid does not change, so no command can signal or
 * trace it.
 */
import { tryCall } from '../base/kernel/system-call.ts'

export interface User {
  readonly uid: number
  readonly gid: number
}

/** `act` must be synchronous: the rights are the thread's, and other work would run with them. */
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
