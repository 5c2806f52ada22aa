import { PenError } from '../error.ts'
import { readKernelFile } from './kernel-file.ts'

const CAP_SETUID = 7
const CAP_SYS_ADMIN = 21
const EVERY_ID = /^\s*0\s+0\s+4294967295\s*$/
/** Root only inside a user namespace that another user owns. */
const ROOT_OF_NAMESPACE = /^\s*0\s+[1-9]/

/** Whether this process has all of these effective capabilities. */
export function hasCapabilities(...bits: readonly number[]): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readKernelFile('/proc/self/status'))?.[1]
  const held = BigInt(`0x${effective ?? '0'}`)
  return bits.every(bit => ((held >> BigInt(bit)) & 1n) === 1n)
}

let known: boolean | undefined

/**
 * Whether pen is root and can run a sandbox as another user. The uid alone is not enough: the root of a rootless
 * container is an ordinary user to the kernel, and pen treats it as one. A root that cannot become another user is
 * refused: its commands would own `/proc/sys` in every namespace.
 */
export function isHostRoot(): boolean {
  known ??= askKernel()
  return known
}

function askKernel(): boolean {
  if (process.getuid?.() !== 0) return false
  const ids = readKernelFile('/proc/self/uid_map')
  if (ROOT_OF_NAMESPACE.test(ids)) return false
  if (EVERY_ID.test(ids) && hasCapabilities(CAP_SETUID, CAP_SYS_ADMIN)) return true
  throw new PenError('BACKEND', {
    what: 'this root can neither become another user nor map files for one, and no command may run as root',
    hint: 'run pen as an ordinary user, or give the container that it runs in the capability SYS_ADMIN',
  })
}
