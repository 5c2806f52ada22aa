/**
 * Compiles the rules into the seccomp program that bubblewrap loads (`--seccomp FD`). The numbers become a binary
 * search. The kernel caches calls that are allowed with all arguments, so those cost nothing at run time.
 */
import { assemble, type Label, type Step } from './bpf.ts'
import { type Answer, type Case, type FilterOptions, type Rule, rulesFor, type Test } from './rules.ts'
import { AUDIT_ARCH, type SeccompArch, syscallNumbers, words } from './syscalls.ts'

const SECCOMP_RET_ERRNO = 0x0005_0000
export const RETURN: Readonly<Record<Answer, number>> = {
  allow: 0x7fff_0000,
  kill: 0x8000_0000,
  EPERM: SECCOMP_RET_ERRNO | 1,
  ENOSYS: SECCOMP_RET_ERRNO | 38,
  ENOPROTOOPT: SECCOMP_RET_ERRNO | 92,
  EPROTONOSUPPORT: SECCOMP_RET_ERRNO | 93,
  EAFNOSUPPORT: SECCOMP_RET_ERRNO | 97,
}

/** Offsets in `struct seccomp_data`, little endian. */
const NR = 0
const ARCH = 4
const low = (arg: number) => 16 + 8 * arg
const high = (arg: number) => low(arg) + 4

const X32_BIT = 0x4000_0000

/** The filter as bytes of `struct sock_filter[]`. This takes milliseconds, so `filter.ts` holds the built programs. */
export function compileFilter(arch: SeccompArch, options: FilterOptions): Uint8Array {
  const blocks = new Map<Rule, Label>()
  const ranges = numberRanges(arch, rulesFor(options), blocks)
  const steps: Step[] = [
    { op: 'load', offset: ARCH },
    { op: 'if', test: 'eq', k: AUDIT_ARCH[arch], no: 'kill' },
    { op: 'load', offset: NR },
  ]
  // x32 calls have the same value in the kernel's arch field. A tracer skips a call by setting its number to -1.
  if (arch === 'x64')
    steps.push(
      { op: 'if', test: 'eq', k: 0xffff_ffff, yes: 'ENOSYS' },
      { op: 'if', test: 'ge', k: X32_BIT, yes: 'kill' },
    )
  search(ranges, steps)
  for (const answer of Object.keys(RETURN) as Answer[])
    steps.push({ op: 'label', name: answer }, { op: 'return', k: RETURN[answer] })
  for (const [rule, label] of blocks) steps.push({ op: 'label', name: label }, ...argumentTests(rule, label))
  return assemble(steps)
}

/** A macro that runs when pen is built. */
export const compiledFilter = (arch: SeccompArch, exec: FilterOptions['exec']): string =>
  Buffer.from(compileFilter(arch, { exec })).toString('base64')

interface Range {
  readonly from: number
  readonly to: Label
}

/** Every number from 0 up, as ranges with the same target. The last range has no end. */
function numberRanges(arch: SeccompArch, rules: readonly Rule[], blocks: Map<Rule, Label>): Range[] {
  const numbers = syscallNumbers(arch)
  const ruleOf = new Map<number, Rule>()
  for (const rule of rules)
    for (const name of words(rule.calls)) {
      const number = numbers.get(name)
      if (number !== undefined) ruleOf.set(number, rule)
    }
  const ranges: Range[] = []
  const end = Math.max(...numbers.values()) + 1
  for (let number = 0; number <= end; number++) {
    const rule = ruleOf.get(number)
    const to = rule === undefined ? 'ENOSYS' : target(rule, blocks)
    if (ranges.at(-1)?.to !== to) ranges.push({ from: number, to })
  }
  return ranges
}

function target(rule: Rule, blocks: Map<Rule, Label>): Label {
  if (rule.cases === undefined) return rule.answer
  const label = blocks.get(rule) ?? `rule ${blocks.size}`
  blocks.set(rule, label)
  return label
}

/** The register A contains the number. Ends at the label of its range. */
function search(ranges: readonly Range[], steps: Step[]): void {
  const middle = ranges.length >> 1
  const [first, pivot] = [ranges[0], ranges[middle]]
  if (first === undefined || pivot === undefined) return
  if (middle === 0) {
    steps.push({ op: 'goto', to: first.to })
    return
  }
  const below = ranges.slice(0, middle)
  const above = ranges.slice(middle)
  const right = `from ${pivot.from}`
  const no = middle === 1 ? { no: first.to } : {}
  if (above.length === 1) {
    steps.push({ op: 'if', test: 'ge', k: pivot.from, yes: pivot.to, ...no })
    if (middle > 1) search(below, steps)
    return
  }
  steps.push({ op: 'if', test: 'ge', k: pivot.from, yes: right, ...no })
  if (middle > 1) search(below, steps)
  steps.push({ op: 'label', name: right })
  search(above, steps)
}

function argumentTests(rule: Rule, label: Label): Step[] {
  const steps: Step[] = []
  for (const [i, one] of (rule.cases ?? []).entries()) {
    const next = `${label} case ${i + 1}`
    steps.push(...caseSteps(one, next), { op: 'label', name: next })
  }
  return [...steps, { op: 'return', k: RETURN[rule.answer] }]
}

const caseSteps = (one: Case, next: Label): Step[] => [
  ...one.when.flatMap((test, i) => testSteps(test, next, `${next} test ${i}`)),
  { op: 'return', k: RETURN[one.answer] },
]

/** Falls through when the test holds, and otherwise goes to `no`. */
function testSteps(test: Test, no: Label, holds: Label): Step[] {
  const load: Step = { op: 'load', offset: low(test.arg) }
  if ('has' in test) return [load, { op: 'if', test: 'any', k: test.has >>> 0, no }]
  if ('only' in test)
    return [
      load,
      { op: 'if', test: 'any', k: ~test.only >>> 0, yes: no },
      { op: 'load', offset: high(test.arg) },
      { op: 'if', test: 'eq', k: 0, no },
    ]
  const masked: Step[] = test.mask === undefined ? [load] : [load, { op: 'and', k: test.mask }]
  return [
    ...masked,
    ...test.is.map((k): Step => ({ op: 'if', test: 'eq', k, yes: holds })),
    { op: 'goto', to: no },
    { op: 'label', name: holds },
  ]
}
