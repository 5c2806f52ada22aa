/**
 * A mount covers a path, not a file. A file with another hard link can be read and written through that link. The sandbox
 * may have made the link in an earlier run, when the file was its own. So pen does not count such a file as covered.
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
