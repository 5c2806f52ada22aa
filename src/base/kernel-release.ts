import { readFileSync } from 'node:fs'

/** What `uname -r` says, without node:os, which takes longer to load than a policy to read. */
export function kernelRelease(): string {
  try {
    return readFileSync('/proc/sys/kernel/osrelease', 'latin1').trim()
  } catch {
    // Not Linux, or a /proc that does not tell.
    return process.getBuiltinModule('node:os').release()
  }
}
