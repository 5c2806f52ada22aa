import { readKernelFile } from './kernel-file.ts'

/** What `uname -r` says, without node:os, which takes longer to load than a policy to read. */
export function kernelRelease(): string {
  try {
    return readKernelFile('/proc/sys/kernel/osrelease').trim()
  } catch {
    // Not Linux, or a /proc that does not tell.
    return process.getBuiltinModule('node:os').release()
  }
}
