import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { answer, answerTo } from '../../../test/bpf-model.ts'
import { compileFilter } from './compile.ts'
import { seccompFilter } from './filter.ts'
import { type Answer, type FilterOptions, rulesFor, type Test } from './rules.ts'
import { AUDIT_ARCH, type SeccompArch, syscallNumbers, words } from './syscalls.ts'

const ARCHES: readonly SeccompArch[] = ['x64', 'arm64']
const OPTIONS: readonly FilterOptions[] = [{ exec: 'any' }, { exec: 'listed' }]
const nameOf = new Map(
  ARCHES.map(arch => [arch, new Map([...syscallNumbers(arch)].map(([name, nr]) => [nr, name]))]),
)
const ruleOf = new Map(
  OPTIONS.map(({ exec }) => [
    exec,
    new Map(rulesFor({ exec }).flatMap(rule => words(rule.calls).map(name => [name, rule] as const))),
  ]),
)

/** The rules read in the simplest way, with 64-bit numbers and no program. */
function declared(arch: SeccompArch, nr: number, args: readonly bigint[], options: FilterOptions): Answer {
  const name = nameOf.get(arch)?.get(nr)
  const rule = name === undefined ? undefined : ruleOf.get(options.exec)?.get(name)
  if (rule === undefined) return 'ENOSYS'
  const holds = (one: Test) => {
    const value = args[one.arg] ?? 0n
    const half = value & 0xffff_ffffn
    if ('has' in one) return (half & BigInt(one.has)) !== 0n
    if ('only' in one) return (value & ~BigInt(one.only)) === 0n
    return one.is.some(k => (half & BigInt(one.mask ?? 0xffff_ffff)) === BigInt(k))
  }
  return rule.cases?.find(one => one.when.every(holds))?.answer ?? rule.answer
}

describe('the table', () => {
  test.each(ARCHES)('every system call of %s is in exactly one rule', arch => {
    const named = rulesFor({ exec: 'any' }).flatMap(rule => words(rule.calls))
    expect(named.filter((name, i) => named.indexOf(name) !== i)).toEqual([])
    expect([...syscallNumbers(arch).keys()].filter(name => !named.includes(name))).toEqual([])
  })

  test('every call in a rule exists on some architecture', () => {
    const known = new Set(ARCHES.flatMap(arch => [...syscallNumbers(arch).keys()]))
    for (const options of OPTIONS)
      for (const rule of rulesFor(options))
        expect(words(rule.calls).filter(name => !known.has(name))).toEqual([])
  })

  test.each([
    ['x64', { read: 0, openat: 257, ptrace: 101, rseq: 334, io_uring_setup: 425, clone3: 435, mseal: 462 }],
    [
      'arm64',
      { read: 63, openat: 56, ptrace: 117, pivot_root: 41, kexec_file_load: 294, clone3: 435, mseal: 462 },
    ],
  ] as const)('the numbers of %s are those of the kernel', (arch, some) => {
    for (const [name, number] of Object.entries(some)) expect(syscallNumbers(arch).get(name)).toBe(number)
  })
})

describe('the compiled filter', () => {
  test.each(ARCHES)('agrees with the table for every number of %s', arch => {
    const mixes = [0n, 1n, 0xffff_ffffn, 0xffff_ffff_ffff_ffffn, 0o6755n, 1n << 32n, 0x8000_0000n]
    for (const options of OPTIONS)
      for (let nr = 0; nr <= 550; nr++)
        for (const mix of mixes) {
          const args = [mix, mix, mix, mix, mix, mix]
          const got = answerTo(arch, { nr, arch: AUDIT_ARCH[arch], args }, options)
          if (got !== declared(arch, nr, args, options)) throw new Error(`${arch} ${nr} ${mix}: ${got}`)
        }
  })

  test('agrees with the table for arguments drawn from the edges of every rule', () => {
    const edges = rulesFor({ exec: 'listed' })
      .flatMap(rule => rule.cases ?? [])
      .flatMap(one => one.when)
      .flatMap(one => ('has' in one ? [one.has] : 'only' in one ? [one.only] : one.is))
    const half = fc.oneof(fc.constantFrom(...edges), fc.nat(0xffff), fc.integer({ min: 0, max: 0xffff_ffff }))
    const arg = fc.tuple(half, half, fc.constantFrom(0n, 0n, 1n, 0xffff_ffffn))
    const inspected = rulesFor({ exec: 'listed' })
      .filter(rule => rule.cases !== undefined)
      .flatMap(rule => words(rule.calls))
    const numbersOf = new Map(
      ARCHES.map(arch => [arch, inspected.flatMap(name => syscallNumbers(arch).get(name) ?? [])]),
    )
    fc.assert(
      fc.property(
        fc.constantFrom(...ARCHES),
        fc.constantFrom(...OPTIONS),
        fc.nat(),
        fc.array(arg, { minLength: 6, maxLength: 6 }),
        (arch, options, pick, parts) => {
          const numbers = numbersOf.get(arch) ?? []
          const nr = numbers[pick % numbers.length] ?? 0
          const args = parts.map(([a, b, top]) => (top << 32n) | BigInt(pick % 2 === 0 ? a : (a | b) >>> 0))
          expect(answerTo(arch, { nr, arch: AUDIT_ARCH[arch], args }, options)).toBe(
            declared(arch, nr, args, options),
          )
        },
      ),
      { numRuns: 3000 },
    )
  })

  test.each(ARCHES)('numbers that the table of %s does not have do not exist', arch => {
    for (const nr of [472, 500, 512, 547, 1000, 0x3fff_ffff]) expect(answer(arch, nr)).toBe('ENOSYS')
  })

  test('another ABI kills the process', () => {
    for (const foreign of [0x4000_0003, 0xc000_00b7, 0x4000_0028, 0])
      expect(answerTo('x64', { nr: 0, arch: foreign }, { exec: 'any' })).toBe('kill')
    for (const foreign of [0x4000_0028, 0xc000_003e, 0])
      expect(answerTo('arm64', { nr: 0, arch: foreign }, { exec: 'any' })).toBe('kill')
  })

  test('x32 kills the process, a call that a tracer skipped does not', () => {
    expect(answer('x64', 0x4000_0000)).toBe('kill')
    expect(answer('x64', 0x4000_0000 | 512)).toBe('kill')
    expect(answer('x64', 0xffff_fffe)).toBe('kill')
    expect(answer('x64', 0xffff_ffff)).toBe('ENOSYS')
    expect(answer('arm64', 0xffff_ffff)).toBe('ENOSYS')
  })

  test('the program is short, and the built one is the compiled one', () => {
    for (const arch of ARCHES)
      for (const options of OPTIONS) {
        const program = compileFilter(arch, options)
        expect(program.length / 8).toBeLessThan(400)
        expect(Buffer.from(seccompFilter(options, arch))).toEqual(Buffer.from(program))
      }
  })
})
