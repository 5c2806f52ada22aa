/**
 * `pen __guest` runs a tiny virtual machine in KVM. It is a separate process, because a broken KVM can hang or kill it.
 * The guest uses 64-bit mode with paging, like every kernel. It adds with a vector instruction, which KVM executes and
 * never emulates. So a KVM that can only emulate fails this check.
 */
import { ptr } from 'bun:ffi'
import { constants, openSync, writeSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { CallFailed } from '../base/kernel/call-failed.ts'
import { succeeded, tryCall } from '../base/kernel/system-call.ts'

export const GUEST_MODE = '__guest'
export const KVM = '/dev/kvm'

/** The steps: open the device, create a machine, create a processor, run a guest to its end. */
type Step = 'open' | 'create' | 'processor' | 'run' | 'ran'

export interface Trial {
  /** The last step. On architectures other than x86-64 pen stops at `processor`. */
  readonly at: Step
  /** Name or number of the error; undefined if the kernel reported none. */
  readonly errno: string | undefined
}

export async function runGuest(): Promise<number> {
  writeSync(1, JSON.stringify(tryGuest()))
  return 0
}

export function tryGuest(device: string = KVM): Trial {
  let at: Step = 'open'
  try {
    const kvm = openSync(device, constants.O_RDWR)
    at = 'create'
    if (ioctl('KVM_GET_API_VERSION', kvm, 0xae00) !== 12) return { at, errno: undefined }
    const machine = ioctl('KVM_CREATE_VM', kvm, 0xae01)
    at = 'processor'
    const processor = ioctl('KVM_CREATE_VCPU', machine, 0xae41)
    if (process.arch !== 'x64') return { at, errno: undefined }
    at = 'run'
    return { at: run(kvm, machine, processor) ? 'ran' : at, errno: undefined }
  } catch (error) {
    const errno = error instanceof CallFailed ? String(error.errno) : errnoOf(error)
    return { at, errno: errno ?? 'unknown' }
  }
}

const PAGE = 4096
/** Physical addresses in the guest. Its page tables map the first 2 MiB to themselves. */
const AT = { level4: 0x1000, level3: 0x2000, level2: 0x3000, code: 0x4000, result: 0x5000, end: 0x6000 }
const PRESENT_WRITABLE = 0x3
const LARGE = 0x80
const NUMBER = 0x2a51
// mov eax, NUMBER; movd xmm0, eax; paddd xmm0, xmm0; movd [AT.result], xmm0; hlt
const CODE = [0xb8, 0x51, 0x2a, 0, 0, 0x66, 0x0f, 0x6e, 0xc0, 0x66, 0x0f, 0xfe, 0xc0]
const STORE_AND_HALT = [0x66, 0x0f, 0x7e, 0x04, 0x25, 0, 0x50, 0, 0, 0xf4]

/** Whether the guest halted and left the right result in its memory. */
function run(kvm: number, machine: number, processor: number): boolean {
  const room = new Uint8Array(new ArrayBuffer(AT.end + PAGE))
  const memory = room.subarray(PAGE - (ptr(room) % PAGE)).subarray(0, AT.end)
  const words = new DataView(memory.buffer, memory.byteOffset, AT.end)
  words.setUint32(AT.level4, AT.level3 | PRESENT_WRITABLE, true)
  words.setUint32(AT.level3, AT.level2 | PRESENT_WRITABLE, true)
  words.setUint32(AT.level2, LARGE | PRESENT_WRITABLE, true)
  memory.set([...CODE, ...STORE_AND_HALT], AT.code)
  const region = new BigUint64Array([0n, 0n, BigInt(AT.end), BigInt(ptr(memory))])
  ioctl('KVM_SET_USER_MEMORY_REGION', machine, 0x4020ae46, bytesOf(region))
  giveFeatures(kvm, processor)
  enterLongMode(processor)
  const registers = new BigUint64Array(18)
  registers[16] = BigInt(AT.code)
  registers[17] = 2n
  ioctl('KVM_SET_REGS', processor, 0x4090ae82, bytesOf(registers))
  ioctl('KVM_RUN', processor, 0xae80)
  return words.getUint32(AT.result, true) === 2 * NUMBER
}

/** Gives the guest all CPU features that KVM supports. */
function giveFeatures(kvm: number, processor: number): void {
  const MOST = 256
  const features = new Uint8Array(8 + 40 * MOST)
  new DataView(features.buffer).setUint32(0, MOST, true)
  ioctl('KVM_GET_SUPPORTED_CPUID', kvm, 0xc008ae05, features)
  ioctl('KVM_SET_CPUID2', processor, 0x4008ae90, features)
}

/** struct kvm_sregs: eight segments of 24 bytes, two tables of 16, then cr0, cr2, cr3, cr4, cr8 and efer. */
function enterLongMode(processor: number): void {
  const state = new Uint8Array(312)
  ioctl('KVM_GET_SREGS', processor, 0x8138ae83, state)
  const view = new DataView(state.buffer)
  const CODE_SEGMENT = { selector: 8, type: 11, is32: 0, is64: 1 }
  const DATA_SEGMENT = { selector: 16, type: 3, is32: 1, is64: 0 }
  for (let i = 0; i < 6; i++) {
    const { selector, type, is32, is64 } = i === 0 ? CODE_SEGMENT : DATA_SEGMENT
    view.setBigUint64(24 * i, 0n, true)
    view.setUint32(24 * i + 8, 0xffff_ffff, true)
    view.setUint16(24 * i + 12, selector, true)
    // type, present, privilege, 32 bits, no system segment, 64 bits, limit in pages
    state.set([type, 1, 0, is32, 1, is64, 1, 0, 0], 24 * i + 14)
  }
  view.setBigUint64(224, 0x8005_0033n, true) // cr0: paging, write protection, FPU, protected mode
  view.setBigUint64(240, BigInt(AT.level4), true) // cr3
  view.setBigUint64(248, 0x620n, true) // cr4: physical address extension, vector registers
  view.setBigUint64(264, 0x500n, true) // efer: long mode, enabled and active
  ioctl('KVM_SET_SREGS', processor, 0x4138ae84, state)
}

const ioctl = (name: string, fd: number, request: number, argument: Uint8Array | number = 0): number =>
  succeeded(name, tryCall('ioctl', fd, request, argument))

const bytesOf = (words: BigUint64Array<ArrayBuffer>): Uint8Array => new Uint8Array(words.buffer)
