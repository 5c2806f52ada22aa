/**
 * Whoever started pen may have told the kernel to forget ended children, and that is passed on: then nobody could learn how a
 * program ended. To be called before the first is started.
 */
import { readKernelFile } from './kernel/kernel-file.ts'
import { restoreSignal } from './kernel/process.ts'

const SIGCHLD = 17

let isDone: boolean = false

export function rememberChildren(): void {
  if (isDone || process.platform !== 'linux') return
  isDone = true
  // Its last five digits have the first twenty signals.
  const [, ignored = '0'] =
    /^SigIgn:\s*[0-9a-f]*([0-9a-f]{5})$/m.exec(readKernelFile('/proc/self/status')) ?? []
  if ((Number.parseInt(ignored, 16) >> (SIGCHLD - 1)) & 1) restoreSignal(SIGCHLD)
}
