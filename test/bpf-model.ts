/**
 * A model of the kernel's seccomp interpreter: it runs the assembled bytes on one system call. It is
 * written from the kernel's documentation and apart from the assembler, so that one cannot hide the other's bugs.
 */
import { compileFilter, RETURN } from '../src/backend/seccomp/compile.ts'
import type { Answer, FilterOptions } from '../src/backend/seccomp/rules.ts'
import { AUDIT_ARCH, type SeccompArch, syscallNumbers } from '../src/backend/seccomp/syscalls.ts'

export interface SystemCall {
  readonly nr: number
  readonly arch: number
  readonly args?: readonly (number | bigint)[]
}

export function runFilter(program: Uint8Array, call: SystemCall): number {
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, call.nr >>> 0, true)
  data.setUint32(4, call.arch, true)
  for (const [i, arg] of (call.args ?? []).entries())
    data.setBigUint64(16 + 8 * i, BigInt.asUintN(64, BigInt(arg)), true)
  const code = new DataView(program.buffer, program.byteOffset, program.byteLength)
  let a = 0
  for (let pc = 0; ; pc++) {
    if (pc * 8 >= program.byteLength) throw new Error(`ran off the end at ${pc}`)
    const k = code.getUint32(pc * 8 + 4, true)
    const branch = (taken: boolean) => code.getUint8(pc * 8 + (taken ? 2 : 3))
    const operation = code.getUint16(pc * 8, true)
    if (operation === 0x20) a = data.getUint32(k, true)
    else if (operation === 0x54) a = (a & k) >>> 0
    else if (operation === 0x05) pc += k
    else if (operation === 0x15) pc += branch(a === k)
    else if (operation === 0x35) pc += branch(a >= k)
    else if (operation === 0x45) pc += branch((a & k) !== 0)
    else if (operation === 0x06) return k
    else throw new Error(`instruction ${operation.toString(16)} at ${pc}`)
  }
}

const programs = new Map<string, Uint8Array>()

/** The filter's verdict on one call, in words. */
export function answerTo(arch: SeccompArch, call: SystemCall, options: FilterOptions): Answer {
  const key = `${arch} ${options.exec}`
  const program = programs.get(key) ?? compileFilter(arch, options)
  programs.set(key, program)
  const value = runFilter(program, call)
  const found = (Object.keys(RETURN) as Answer[]).find(one => RETURN[one] === value)
  if (found === undefined) throw new Error(`unknown return value ${value.toString(16)}`)
  return found
}

/** The same for a native call by its name or number. */
export function answer(
  arch: SeccompArch,
  name: string | number,
  args: readonly (number | bigint)[] = [],
  exec: FilterOptions['exec'] = 'any',
): Answer {
  const nr = typeof name === 'number' ? name : syscallNumbers(arch).get(name)
  if (nr === undefined) throw new Error(`${arch} has no ${name}`)
  return answerTo(arch, { nr, arch: AUDIT_ARCH[arch], args }, { exec })
}
