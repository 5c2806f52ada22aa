import { PenError } from '../error.ts'
import { readKernelFile } from './kernel-file.ts'

const CAP_SETUID = 7
const CAP_SYS_ADMIN = 21
const EVERY_ID = /^\s*0\s+0\s+4294967295\s*$/
/** In a user namespace of somebody else's: root by name only. */
const SOMEBODY_ELSE = /^\s*0\s+[1-9]/

/** What this process may do, as the kernel counts it. */
export function hasCapabilities(...bits: readonly number[]): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readKernelFile('/proc/self/status'))?.[1]
  const held = BigInt(`0x${effective ?? '0'}`)
  return bits.every(bit => ((held >> BigInt(bit)) & 1n) === 1n)
}

let known: boolean | undefined

/**
 * Whether pen is root and can be somebody else for a sandbox. The uid alone does not tell: the root of a rootless
 * container is an ordinary user to the kernel, and is served as one. But root that cannot give itself away is refused.
 * To the kernel its commands would own `/proc/sys`, whatever namespace they are in.
 */
export function isHostRoot(): boolean {
  known ??= askKernel()
  return known
}

function askKernel(): boolean {
  if (process.getuid?.() !== 0) return false
  const ids = readKernelFile('/proc/self/uid_map')
  if (SOMEBODY_ELSE.test(ids)) return false
  if (EVERY_ID.test(ids) && hasCapabilities(CAP_SETUID, CAP_SYS_ADMIN)) return true
  throw new PenError('BACKEND', {
    what: 'this root can neither become another user nor map files for one, and no command may run as root',
    hint: 'run pen as an ordinary user, or give the container that it runs in the capability SYS_ADMIN',
  })
}
