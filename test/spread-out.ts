/**
 * ext4 without a journal does not reuse a deleted inode for minutes. Each new file searches past all of them in its
 * block group. In a test run that took 7 % of the CPU time over five minutes, and 21 % in one minute. `chattr +T` puts
 * each directory below this one into a block group of its own. File systems without the flag do not need it.
 */
import { spawnSync } from 'node:child_process'

export function spreadOut(directory: string): void {
  spawnSync('chattr', ['+T', directory], { stdio: 'ignore' })
}
