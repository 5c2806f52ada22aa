/**
 * Landlock restricts execution: this process and its descendants execute only the listed files. Landlock does not judge
 * mapped files, so every place that the sandbox can write is also mounted noexec. Landlock also separates the command
 * from bubblewrap's process, which is unrestricted: no ptrace, no /proc/1/mem.
 */
import { AT_FDCWD, close, O_CLOEXEC, O_PATH } from '../base/kernel/descriptor.ts'
import { cString, tryCall } from '../base/kernel/system-call.ts'
import { required } from './become.ts'

/** Only execution is restricted. With reads, every open() took 50% longer. */
const EXECUTE = 1n
const PATH_BENEATH = 1

export function restrictExecution(executable: readonly string[]): void {
  const handled = new Uint8Array(new BigUint64Array([EXECUTE]).buffer)
  const create = 'landlock_create_ruleset'
  const ruleset = check(create, tryCall(create, handled, handled.length, 0))
  for (const path of executable) allow(ruleset, path)
  check('landlock_restrict_self', tryCall('landlock_restrict_self', ruleset, 0))
  close(ruleset)
}

function allow(ruleset: number, path: string): void {
  const fd = tryCall('openat', AT_FDCWD, cString(path), O_PATH | O_CLOEXEC)
  // A listed file that this sandbox does not have cannot be executed anyway.
  if (fd < 0) return
  // struct landlock_path_beneath_attr, packed: 64 bits of rights, 32 of descriptor.
  const rule = Buffer.alloc(12)
  rule.writeBigUInt64LE(EXECUTE, 0)
  rule.writeInt32LE(fd, 8)
  check('landlock_add_rule', tryCall('landlock_add_rule', ruleset, PATH_BENEATH, rule, 0))
  close(fd)
}

const check = (call: string, result: number): number =>
  required(
    'tools.exec "listed" cannot be enforced',
    call,
    result,
    'update the engine: its seccomp profile may refuse Landlock',
  )
