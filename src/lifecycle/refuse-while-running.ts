/** Whether commands of pen run go on in a project: what pen keeps of it holds their audit and their volumes, and is not taken from under them. */
import { readlinkSync } from 'node:fs'
import { auditDirectory } from '../audit/directory.ts'
import { runningPids } from '../audit/running.ts'
import { PenError } from '../base/error.ts'
import { basename } from '../base/posix-path.ts'

/** Such a one ends with its command, which only its user can judge. The supervisor of one that stays is ended, as by pen stop. */
export function refuseWhileRunning(stateDir: string, supervisor: number | undefined): void {
  const pid = runningPids(auditDirectory(stateDir)).find(one => one !== supervisor && isPen(one))
  if (pid === undefined) return
  throw new PenError('STATE', {
    what: `a command of pen still runs in the sandbox ${basename(stateDir)} (process ${pid}); nothing was removed`,
    at: stateDir,
    hint: 'end it, then try again',
  })
}

/** The number of one that was killed may be another program's by now. */
function isPen(pid: number): boolean {
  try {
    return nameOf(readlinkSync(`/proc/${pid}/exe`)) === nameOf(process.execPath)
  } catch {
    return false
  }
}

const nameOf = (program: string): string => basename(program).replace(/ \(deleted\)$/, '')
