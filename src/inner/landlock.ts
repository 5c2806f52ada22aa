/**
 * Landlock, the second lock on execution: from here on this process and all it starts execute only what is named, and
 * open for reading only files that the sandbox itself shows. The first lock is that every place which the sandbox can
 * write is mounted noexec.
 */
import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { call } from './kernel.ts'

const CALL = { createRuleset: 444, addRule: 445, restrictSelf: 446 }
const ACCESS = { execute: 1, readFile: 4 }
const PATH_BENEATH = 1
const O_PATH = 0o10000000

export function restrictExecution(executable: readonly string[]): void {
  const handled = new Uint8Array(new BigUint64Array([BigInt(ACCESS.execute | ACCESS.readFile)]).buffer)
  const ruleset = check('landlock_create_ruleset', call(CALL.createRuleset, handled, handled.length, 0))
  allowPath(ruleset, '/', ACCESS.readFile)
  for (const path of executable) allowPath(ruleset, path, ACCESS.execute)
  // Standard input was opened by the user, and `/dev/stdin` should open it again. An output that is a file must not be
  // opened for reading: it lies on a mount of the host, where what was written to it could be mapped and run.
  for (const fd of [0, 1, 2]) if (fd === 0 || isTerminalLike(fd)) allowIfFile(ruleset, fd)
  check('landlock_restrict_self', call(CALL.restrictSelf, ruleset, 0))
  closeSync(ruleset)
}

function allowPath(ruleset: number, path: string, access: number): void {
  let fd: number
  try {
    fd = openSync(path, O_PATH)
  } catch (error) {
    // Listed, but not in this sandbox's view: then it cannot be executed either.
    if (errnoOf(error) !== undefined) return
    throw error
  }
  check('landlock_add_rule', call(CALL.addRule, ruleset, PATH_BENEATH, beneath(access, fd), 0))
  closeSync(fd)
}

/** Pipes and sockets have no place in a file tree: the kernel refuses a rule on them, and they need none. */
function allowIfFile(ruleset: number, fd: number): void {
  call(CALL.addRule, ruleset, PATH_BENEATH, beneath(ACCESS.readFile, fd), 0)
}

/** struct landlock_path_beneath_attr, packed: 64 bits of rights, 32 of descriptor. */
function beneath(access: number, fd: number): Uint8Array {
  const bytes = Buffer.alloc(12)
  bytes.writeBigUInt64LE(BigInt(access), 0)
  bytes.writeInt32LE(fd, 8)
  return bytes
}

function isTerminalLike(fd: number): boolean {
  try {
    return (fstatSync(fd).mode & constants.S_IFMT) === constants.S_IFCHR
  } catch {
    return false
  }
}

function check(what: string, result: number): number {
  if (result < 0) throw new Error(`${what} failed with errno ${-result}`)
  return result
}
