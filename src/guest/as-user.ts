/**
 * The agent is root of its container, without the capability to pass over file modes: a directory that is the user's alone
 * is closed to it. So it looks for programs, opens terminals and starts commands with the user's rights over files, and
 * what it makes meanwhile (pipes, pseudo-terminals) is the user's. Its own id, which protects it from signals and tracing,
 * does not change for a moment.
 */
import { call } from './kernel.ts'

const CALL = process.arch === 'arm64' ? { setfsuid: 151, setfsgid: 152 } : { setfsuid: 122, setfsgid: 123 }

export interface User {
  readonly uid: number
  readonly gid: number
}

/** `act` must not wait for anything: the rights are this thread's, and other work would run with them. */
export function asUser<T>(user: User | undefined, act: () => T): T {
  if (user === undefined) return act()
  call(CALL.setfsgid, user.gid)
  call(CALL.setfsuid, user.uid)
  try {
    return act()
  } finally {
    call(CALL.setfsuid, 0)
    call(CALL.setfsgid, 0)
  }
}
