import { describe, expect, test } from 'bun:test'
import { runFilter } from '../../../test/bpf-model.ts'
import { assemble, type Step } from './bpf.ts'

const run = (steps: readonly Step[], nr: number, args: readonly (number | bigint)[] = []) =>
  runFilter(assemble(steps), { nr, arch: 1, args })

const padding = (n: number): Step[] => Array.from({ length: n }, () => ({ op: 'and', k: 0xffff_ffff }))

describe('assemble', () => {
  test('one return is the whole of the smallest program', () => {
    expect([...assemble([{ op: 'return', k: 0x7fff_0000 }])]).toEqual([6, 0, 0, 0, 0, 0, 0xff, 0x7f])
  })

  test('a missing target is the next step', () => {
    const steps: Step[] = [
      { op: 'load', offset: 0 },
      { op: 'if', test: 'eq', k: 7, yes: 'seven' },
      { op: 'return', k: 0 },
      { op: 'label', name: 'seven' },
      { op: 'return', k: 1 },
    ]
    expect(run(steps, 7)).toBe(1)
    expect(run(steps, 8)).toBe(0)
  })

  test.each([
    ['eq', 0xffff_ffff, 0xffff_ffff, 0xffff_fffe],
    ['ge', 0x8000_0000, 0xffff_ffff, 0x7fff_ffff],
    ['any', 0x8000_0001, 0x8000_0000, 0x7fff_fffe],
  ] as const)('%s compares without a sign', (kind, k, yes, no) => {
    const steps: Step[] = [
      { op: 'load', offset: 0 },
      { op: 'if', test: kind, k, no: 'no' },
      { op: 'return', k: 1 },
      { op: 'label', name: 'no' },
      { op: 'return', k: 0 },
    ]
    expect(run(steps, yes)).toBe(1)
    expect(run(steps, no)).toBe(0)
  })

  test('jumps of every length around the 8-bit limit arrive', () => {
    for (const gap of [0, 1, 252, 253, 254, 255, 256, 257, 600]) {
      const steps: Step[] = [
        { op: 'load', offset: 0 },
        { op: 'if', test: 'eq', k: 1, yes: 'far', no: 'near' },
        { op: 'label', name: 'near' },
        ...padding(gap),
        { op: 'return', k: 10 },
        { op: 'label', name: 'far' },
        { op: 'return', k: 20 },
      ]
      expect(run(steps, 1)).toBe(20)
      expect(run(steps, 2)).toBe(10)
    }
  })

  test('a jump that grows pushes its neighbours over the limit, and they grow too', () => {
    const chain: Step[] = Array.from({ length: 40 }, (_, i) => ({
      op: 'if',
      test: 'eq',
      k: i,
      yes: `case ${i}`,
    }))
    const steps: Step[] = [{ op: 'load', offset: 0 }, ...chain, { op: 'return', k: 999 }, ...padding(214)]
    for (let i = 0; i < 40; i++) steps.push({ op: 'label', name: `case ${i}` }, { op: 'return', k: i })
    for (let i = 0; i < 40; i++) expect(run(steps, i)).toBe(i)
    expect(run(steps, 40)).toBe(999)
  })

  test.each<[string, readonly Step[]]>([
    [
      'is missing',
      [
        { op: 'goto', to: 'nowhere' },
        { op: 'return', k: 0 },
      ],
    ],
    [
      'is defined twice',
      [
        { op: 'label', name: 'a' },
        { op: 'label', name: 'a' },
        { op: 'return', k: 0 },
      ],
    ],
    [
      'is before its jump',
      [
        { op: 'label', name: 'a' },
        { op: 'goto', to: 'a' },
        { op: 'return', k: 0 },
      ],
    ],
    [
      'past the end',
      [
        { op: 'goto', to: 'a' },
        { op: 'return', k: 0 },
        { op: 'label', name: 'a' },
      ],
    ],
    ['not a return', [{ op: 'load', offset: 0 }]],
    [
      'load from',
      [
        { op: 'load', offset: 64 },
        { op: 'return', k: 0 },
      ],
    ],
    [
      'load from',
      [
        { op: 'load', offset: 2 },
        { op: 'return', k: 0 },
      ],
    ],
    ['operand', [{ op: 'return', k: -1 }]],
    ['0 instructions', []],
    ['4097 instructions', [...padding(4096), { op: 'return', k: 0 }]],
  ])('a program whose step %s is refused', (why, steps) => {
    expect(() => assemble(steps)).toThrow(why)
  })

  test('the longest program that the kernel accepts is assembled', () => {
    expect(assemble([...padding(4095), { op: 'return', k: 0 }]).length).toBe(4096 * 8)
  })
})
