/**
 * Whoever started pen may have told the kernel to forget ended children, and that is passed on: then nobody could learn how a
 * program ended. To be called before the first is started.
 */
import { cLibrary } from './c-library.ts'
import { readKernelFile } from './kernel-file.ts'

const libc = cLibrary({ signal: { args: ['i32', 'u64'], returns: 'u64' } })
const SIGCHLD = 17
const SIG_DFL = 0

let isDone: boolean = false

export function rememberChildren(): void {
  if (isDone || process.platform !== 'linux') return
  isDone = true
  const [, ignored = '0'] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readKernelFile('/proc/self/status')) ?? []
  if ((BigInt(`0x${ignored}`) >> BigInt(SIGCHLD - 1)) & 1n) libc().signal(SIGCHLD, SIG_DFL)
}
