/**
 * A small assembler for classic BPF, the language of seccomp filters. Jumps go forward only. A conditional jump reaches
 * 255 instructions, `goto` reaches all. A program is data, and targets are names, so the filter's compiler never counts
 * instructions.
 */
import { PenError } from '../../base/error.ts'

export type Label = string

export type Step =
  | { readonly op: 'label'; readonly name: Label }
  /** A := the 32-bit word at this byte offset of `struct seccomp_data`. */
  | { readonly op: 'load'; readonly offset: number }
  | { readonly op: 'and'; readonly k: number }
  | { readonly op: 'goto'; readonly to: Label }
  /** `eq`: A = k, `ge`: A ≥ k, `any`: A & k ≠ 0, unsigned. A missing target is the next step. */
  | {
      readonly op: 'if'
      readonly test: 'eq' | 'ge' | 'any'
      readonly k: number
      readonly yes?: Label
      readonly no?: Label
    }
  | { readonly op: 'return'; readonly k: number }

const BPF = {
  load: 0x20,
  and: 0x54,
  goto: 0x05,
  eq: 0x15,
  ge: 0x35,
  any: 0x45,
  return: 0x06,
} as const

/** The kernel's limits: BPF_MAXINSNS, and the size of `struct seccomp_data`. */
const MAX_INSTRUCTIONS = 4096
const SECCOMP_DATA_SIZE = 64
const NEAR = 255

/** The program as an array of `struct sock_filter`, little endian. */
export function assemble(steps: readonly Step[]): Uint8Array {
  const far = new Set<number>()
  let layout = place(steps, far)
  while (widen(steps, layout, far)) layout = place(steps, far)
  return emit(steps, layout, far)
}

interface Layout {
  /** The address of each step. */
  readonly at: readonly number[]
  readonly labels: ReadonlyMap<Label, number>
  readonly length: number
}

function place(steps: readonly Step[], far: ReadonlySet<number>): Layout {
  const at: number[] = []
  const labels = new Map<Label, number>()
  let address = 0
  for (const [i, step] of steps.entries()) {
    at.push(address)
    if (step.op === 'label') {
      if (labels.has(step.name)) throw broken(`label ${step.name} is defined twice`)
      labels.set(step.name, address)
    } else address += far.has(i) ? 3 : 1
  }
  if (address === 0 || address > MAX_INSTRUCTIONS) throw broken(`${address} instructions`)
  return { at, labels, length: address }
}

/** Marks the conditional jumps whose target is out of reach. Code only grows, so the loop ends. */
function widen(steps: readonly Step[], layout: Layout, far: Set<number>): boolean {
  const before = far.size
  for (const [i, step] of steps.entries()) {
    if (step.op !== 'if' || far.has(i)) continue
    const from = (layout.at[i] ?? 0) + 1
    for (const label of [step.yes, step.no])
      if (label !== undefined && distance(layout, from, label) > NEAR) far.add(i)
  }
  return far.size > before
}

function emit(steps: readonly Step[], layout: Layout, far: ReadonlySet<number>): Uint8Array {
  const bytes = new Uint8Array(layout.length * 8)
  const view = new DataView(bytes.buffer)
  let pc = 0
  const put = (code: number, jt: number, jf: number, k: number) => {
    if (!Number.isInteger(k) || k < 0 || k > 0xffff_ffff) throw broken(`operand ${k}`)
    view.setUint16(pc * 8, code, true)
    view.setUint8(pc * 8 + 2, jt)
    view.setUint8(pc * 8 + 3, jf)
    view.setUint32(pc * 8 + 4, k, true)
    pc++
  }
  const reach = (label: Label | undefined, next: number) =>
    label === undefined ? next - pc - 1 : distance(layout, pc + 1, label)
  for (const [i, step] of steps.entries()) {
    switch (step.op) {
      case 'label':
        break
      case 'load':
        if (step.offset % 4 !== 0 || step.offset < 0 || step.offset >= SECCOMP_DATA_SIZE)
          throw broken(`load from ${step.offset}`)
        put(BPF.load, 0, 0, step.offset)
        break
      case 'and':
        put(BPF.and, 0, 0, step.k)
        break
      case 'return':
        put(BPF.return, 0, 0, step.k)
        break
      case 'goto':
        put(BPF.goto, 0, 0, reach(step.to, pc + 1))
        break
      case 'if':
        if (far.has(i)) {
          const next = pc + 3
          put(BPF[step.test], 0, 1, step.k)
          put(BPF.goto, 0, 0, reach(step.yes, next))
          put(BPF.goto, 0, 0, reach(step.no, next))
        } else put(BPF[step.test], reach(step.yes, pc + 1), reach(step.no, pc + 1), step.k)
        break
    }
  }
  // The kernel refuses a program that can run off its end. The check here reports it earlier.
  if (view.getUint16((pc - 1) * 8, true) !== BPF.return) throw broken('the last step is not a return')
  return bytes
}

function distance(layout: Layout, from: number, label: Label): number {
  const to = layout.labels.get(label)
  if (to === undefined) throw broken(`label ${label} is missing`)
  if (to < from) throw broken(`label ${label} is before its jump`)
  if (to >= layout.length) throw broken(`label ${label} is past the end`)
  return to - from
}

const broken = (what: string) => new PenError('INTERNAL', { what: `the BPF program is broken: ${what}` })
