/**
 * A mount holds a place, not a file. A file with a second name can be read and written by that name, wherever it stands: the
 * sandbox itself may have made it in an earlier run, when it was its own file that it put there. So such a file is not held.
 */
import type { BigIntStats } from 'node:fs'
import { PenError } from '../base/error.ts'

export function refuseHardLink(path: string, stats: BigIntStats, held: 'protected' | 'denied'): void {
  if (!stats.isFile() || stats.nlink <= 1n) return
  const danger = held === 'denied' ? 'read it' : 'change it'
  throw new PenError('PATH_REFUSED', {
    what: `this file is ${held}, but has ${stats.nlink - 1n === 1n ? 'a second name' : `${stats.nlink - 1n} other names`} (hard links), and by another name a sandbox could ${danger}`,
    at: path,
    hint: 'look at what it says, then make it a file of its own: cp -p FILE FILE.new && mv FILE.new FILE',
  })
}
