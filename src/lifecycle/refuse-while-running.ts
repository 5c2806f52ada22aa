/** Refuses to remove the state of a project while a `pen run` uses its audit and volumes. */
import { readlinkSync } from 'node:fs'
import { auditDirectory } from '../audit/directory.ts'
import { runningPids } from '../audit/running.ts'
import { PenError } from '../base/error.ts'
import { basename } from '../base/posix-path.ts'

/** Only the user can decide to end a `pen run`. The supervisor of `pen start` is excepted: the caller stops it. */
export function refuseWhileRunning(stateDir: string, supervisor: number | undefined): void {
  const pid = runningPids(auditDirectory(stateDir)).find(one => one !== supervisor && isPen(one))
  if (pid === undefined) return
  throw new PenError('STATE', {
    what: `a pen run still uses the sandbox ${basename(stateDir)} (process ${pid}); nothing was removed`,
    at: stateDir,
    hint: 'end it, then try again',
  })
}

/** The kernel may have reused the pid of a killed pen. */
function isPen(pid: number): boolean {
  try {
    return nameOf(readlinkSync(`/proc/${pid}/exe`)) === nameOf(process.execPath)
  } catch {
    return false
  }
}

const nameOf = (program: string): string => basename(program).replace(/ \(deleted\)$/, '')
