/**
 * For work of the host's git in a project, and to accept protected files. A sandbox of the same project could swap the directories, or
 * write what is staged. None runs meanwhile, and none starts: see `WatchRecord.open`.
 */
import { existsSync, readdirSync } from 'node:fs'
import { tryLock } from '../config/lock.ts'
import { isHeld, recordsIn } from '../survey/run-records.ts'
import { adoptingIn } from './watch-record.ts'

/** Undefined, and no work done, while another sandbox runs. `mine` are the records that this process holds. */
export async function whileAlone<T>(
  stateDir: string,
  mine: readonly string[],
  work: () => Promise<T>,
): Promise<T | undefined> {
  const lock = tryLock(adoptingIn(stateDir))
  if (lock === undefined) return undefined
  try {
    // Each start makes its record first, and looks at the lock then.
    const dir = recordsIn(stateDir)
    const others = existsSync(dir) ? readdirSync(dir).filter(run => !mine.includes(run)) : []
    return others.some(run => isHeld(`${dir}/${run}`)) ? undefined : await work()
  } finally {
    lock.release()
  }
}
