/**
 * Landlock, the second lock on execution: from here on this process and all it starts execute only what is named. The
 * first lock is that every place which the sandbox can write is mounted noexec: Landlock does not judge what is mapped.
 * It also parts the command from bubblewrap's own process, which is outside of the lock: no ptrace, no /proc/1/mem.
 */
import { errnoOf, PenError } from '../base/error.ts'
import { O_PATH } from '../base/kernel/file.ts'
import { tryCall } from '../base/kernel/system-call.ts'

/** Nothing but execution is judged: with reading, too, every open() took half as long again. */
const EXECUTE = 1n
const PATH_BENEATH = 1

export function restrictExecution(executable: readonly string[]): void {
  const handled = new Uint8Array(new BigUint64Array([EXECUTE]).buffer)
  const ruleset = check(
    'landlock_create_ruleset',
    tryCall('landlock_create_ruleset', handled, handled.length, 0),
  )
  for (const path of executable) allow(ruleset, path)
  check('landlock_restrict_self', tryCall('landlock_restrict_self', ruleset, 0))
  process.getBuiltinModule('node:fs').closeSync(ruleset)
}

function allow(ruleset: number, path: string): void {
  const { closeSync, openSync } = process.getBuiltinModule('node:fs')
  let fd: number
  try {
    fd = openSync(path, O_PATH)
  } catch (error) {
    // Listed, but not in this sandbox's view: then it cannot be executed either.
    if (errnoOf(error) !== undefined) return
    throw error
  }
  // struct landlock_path_beneath_attr, packed: 64 bits of rights, 32 of descriptor.
  const rule = Buffer.alloc(12)
  rule.writeBigUInt64LE(EXECUTE, 0)
  rule.writeInt32LE(fd, 8)
  check('landlock_add_rule', tryCall('landlock_add_rule', ruleset, PATH_BENEATH, rule, 0))
  closeSync(fd)
}

function check(what: string, result: number): number {
  if (result < 0)
    throw new PenError('BACKEND', {
      what: `tools.exec "listed" cannot be held: ${what} failed with errno ${-result}`,
      hint: 'update the engine: its own filter may refuse Landlock',
    })
  return result
}
