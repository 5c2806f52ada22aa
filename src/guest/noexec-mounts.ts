/**
 * For `tools.exec: "listed"` in a kernel of the sandbox's own: no mount holds programs, except those that the supervisor
 * names, which are read-only. Mounts that appear later inherit it from the mount above.
 */
import { AT_FDCWD, close, O_CLOEXEC, O_PATH } from '../base/kernel/descriptor.ts'
import { cString, tryCall } from '../base/kernel/system-call.ts'
import type { DaemonSetup } from '../protocol/exec-order.ts'
import { required } from './become.ts'

const O_DIRECTORY = 0o200000
const AT_RECURSIVE = 0x8000
const READ_ONLY = 1n
const NOEXEC = 8n
const MS_BIND = 4096
const EINVAL = 22
const ENOENT = 2

export function makeMountsNoexec({ places, programs }: NonNullable<DaemonSetup['noexec']>): void {
  // The tree's mounts appear in the guest when they are first entered.
  for (const path of places) {
    const fd = tryCall('openat', AT_FDCWD, cString(path), O_PATH | O_DIRECTORY | O_CLOEXEC)
    if (fd >= 0) close(fd)
  }
  check('mount_setattr', change('/', { set: NOEXEC, clear: 0n }, AT_RECURSIVE))
  for (const path of programs) {
    const allow = (): number => change(path, { set: READ_ONLY, clear: NOEXEC }, 0)
    const changed = allow()
    if (changed !== -EINVAL) {
      if (changed !== -ENOENT) check('mount_setattr', changed)
      continue
    }
    // It is not a mount of its own.
    check('mount', tryCall('mount', cString(path), cString(path), 0, MS_BIND, 0))
    check('mount_setattr', allow())
  }
}

/** struct mount_attr: set, clear, propagation, user namespace. */
function change(path: string, { set, clear }: { set: bigint; clear: bigint }, flags: number): number {
  const attributes = new Uint8Array(new BigUint64Array([set, clear, 0n, 0n]).buffer)
  return tryCall('mount_setattr', AT_FDCWD, cString(path), flags, attributes, attributes.length)
}

const check = (call: string, result: number): number =>
  required('tools.exec "listed" cannot be enforced', call, result)
