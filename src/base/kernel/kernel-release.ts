import { readKernelFile } from './kernel-file.ts'

/** `uname -r` without node:os, which takes longer to load than a policy takes to read. */
export function kernelRelease(): string {
  try {
    return readKernelFile('/proc/sys/kernel/osrelease').trim()
  } catch {
    // Not Linux, or /proc is hidden.
    return process.getBuiltinModule('node:os').release()
  }
}
