import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PenError } from '../base/error.ts'
import {
  encodeOrder,
  encodeReport,
  type Order,
  OrderReader,
  type Report,
  ReportReader,
} from './exec-messages.ts'
import { encodeFrame } from './frame.ts'

const word = fc.string({ unit: 'binary', maxLength: 20 }).filter(text => !text.includes('\0'))
const env = fc.array(
  fc.record({ name: fc.stringMatching(/^[A-Z_]{1,8}$/), value: word }, { noNullPrototype: true }),
  { maxLength: 4 },
)
const channel = fc.integer({ min: 1, max: 0xffff_ffff })
const bytes = fc.uint8Array({ minLength: 1, maxLength: 50 })
const small = fc.integer({ min: 0, max: 0xffff })
const stream = fc.constantFrom('stdout' as const, 'stderr' as const)
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(model, { noNullPrototype: true })
const optional = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined })
const path = word.map(text => `/${text}`)
const id = fc.integer({ min: 1, max: 0xffff_fffe })

const order: fc.Arbitrary<Order> = fc.oneof(
  record({
    kind: fc.constant('configure'),
    setup: record({
      root: fc.boolean(),
      user: optional(record({ uid: id, gid: id })),
      userDirectories: fc.array(path, { maxLength: 3 }),
      env,
      seccomp: optional(fc.uint8Array({ minLength: 8, maxLength: 8 }).map(b => Buffer.from(b))),
      emptyBounding: fc.boolean(),
      executable: optional(fc.array(path, { maxLength: 3 })),
      noexec: optional(record({ places: fc.array(path), programs: fc.array(path) })),
      processes: optional(fc.integer({ min: 1, max: 4096 })),
    }),
  }) as fc.Arbitrary<Order>,
  record({
    kind: fc.constant('exec'),
    channel,
    order: record({
      argv: fc.array(word),
      cwd: path,
      env,
      terminal: optional(record({ columns: small, rows: small })),
      joined: fc.boolean(),
    }),
  }) as fc.Arbitrary<Order>,
  record({ kind: fc.constant('stdin'), channel, bytes }) as fc.Arbitrary<Order>,
  record({ kind: fc.constantFrom('stdin-end', 'end', 'accept'), channel }) as fc.Arbitrary<Order>,
  record({
    kind: fc.constant('connect'),
    channel,
    port: fc.integer({ min: 1, max: 0xffff }),
  }) as fc.Arbitrary<Order>,
  record({ kind: fc.constant('resize'), channel, columns: small, rows: small }) as fc.Arbitrary<Order>,
  record({
    kind: fc.constant('signal'),
    channel,
    signal: fc.integer({ min: 1, max: 31 }),
  }) as fc.Arbitrary<Order>,
  record({ kind: fc.constant('window'), channel, stream, bytes: small }) as fc.Arbitrary<Order>,
)

const report: fc.Arbitrary<Report> = fc.oneof(
  fc.constant<Report>({ kind: 'ready' }),
  record({ kind: fc.constantFrom('started', 'stdout-end'), channel }) as fc.Arbitrary<Report>,
  record({ kind: stream, channel, bytes }) as fc.Arbitrary<Report>,
  record({ kind: fc.constant('window'), channel, bytes: small }) as fc.Arbitrary<Report>,
  record({
    kind: fc.constant('exit'),
    channel,
    how: fc.constantFrom('exit', 'signal'),
    value: fc.integer({ min: 1, max: 64 }),
  }) as fc.Arbitrary<Report>,
  record({
    kind: fc.constant('failed'),
    channel,
    errno: fc.constantFrom('ENOENT', 'E2BIG'),
    reason: word,
  }) as fc.Arbitrary<Report>,
)

const refused = (act: () => unknown): boolean => {
  try {
    act()
  } catch (error) {
    if (error instanceof PenError && error.code === 'WIRE') return true
    throw error
  }
  return false
}

describe('an order', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(order, one => {
        expect([...new OrderReader().push(encodeOrder(one))]).toEqual([one])
      }),
      { numRuns: 400 },
    )
  })

  const text = (kind: number, channel: number, value: unknown) =>
    encodeFrame(kind, channel, new TextEncoder().encode(JSON.stringify(value)))
  const exec = { argv: ['true'], cwd: '/', env: [], terminal: null, joined: false }
  const configure = {
    root: false,
    user: [1000, 1000],
    userDirectories: [],
    env: [],
    seccomp: null,
    emptyBounding: true,
    executable: null,
    noexec: null,
    processes: null,
  }
  const read = (bytes: Uint8Array) => refused(() => [...new OrderReader().push(bytes)])

  test('with a value out of bounds is refused, and its valid twin is not', () => {
    expect(read(text(2, 1, exec))).toBe(false)
    for (const wrong of [
      { ...exec, more: 1 },
      { ...exec, argv: ['a\0b'] },
      { ...exec, argv: 'true' },
      { ...exec, argv: Array.from({ length: 131_073 }, () => 'a') },
      { ...exec, cwd: 'relative' },
      { ...exec, cwd: '/\0' },
      { ...exec, env: [['A=B', 'c']] },
      { ...exec, env: [['', 'c']] },
      { ...exec, env: [['A', 'c', 'd']] },
      { ...exec, terminal: [80, 65_536] },
      { ...exec, terminal: [80.5, 24] },
      { ...exec, joined: 1 },
      { argv: ['true'], cwd: '/', env: [] },
      [exec],
      null,
    ])
      expect({ wrong, refused: read(text(2, 1, wrong)) }).toEqual({ wrong, refused: true })
  })

  test('never says that commands run as root', () => {
    expect(read(text(1, 0, configure))).toBe(false)
    for (const user of [
      [0, 0],
      [0, 1000],
      [-1, 0],
      [4294967295, 1],
      ['1000', 1000],
    ])
      expect(read(text(1, 0, { ...configure, user }))).toBe(true)
    for (const seccomp of ['', 'AAAA', 'no base64!', 'A'.repeat(60_000)])
      expect(read(text(1, 0, { ...configure, seccomp }))).toBe(true)
    expect(read(text(1, 0, { ...configure, executable: ['/usr/bin/git'] }))).toBe(false)
    for (const executable of ['/usr/bin/git', ['git'], [0]])
      expect(read(text(1, 0, { ...configure, executable }))).toBe(true)
    expect(read(text(1, 0, { ...configure, processes: 512 }))).toBe(false)
    expect(read(text(1, 0, { ...configure, noexec: { places: ['/'], programs: [] } }))).toBe(false)
    for (const noexec of [['/'], { places: ['/'] }, { places: ['tmp'], programs: [] }])
      expect(read(text(1, 0, { ...configure, noexec }))).toBe(true)
    for (const processes of [0, -1, 1.5, '512'])
      expect(read(text(1, 0, { ...configure, processes }))).toBe(true)
  })

  test('of another kind, length or channel is refused', () => {
    expect(read(encodeFrame(4, 1))).toBe(false)
    expect(read(encodeFrame(4, 0))).toBe(true)
    expect(read(encodeFrame(4, 1, Uint8Array.of(0)))).toBe(true)
    expect(read(encodeFrame(3, 1))).toBe(true)
    expect(read(encodeFrame(6, 1, Uint8Array.of(9)))).toBe(false)
    expect(read(encodeFrame(6, 1, Uint8Array.of(0)))).toBe(true)
    expect(read(encodeFrame(7, 1, Uint8Array.of(2, 0, 0, 0, 1)))).toBe(true)
    expect(read(encodeFrame(9, 1, Uint8Array.of(0, 80)))).toBe(false)
    expect(read(encodeFrame(9, 1, Uint8Array.of(0, 0)))).toBe(true)
    expect(read(encodeFrame(16, 0))).toBe(true)
    expect(read(encodeFrame(2, 1, Uint8Array.of(0xff)))).toBe(true)
  })
})

describe('a report', () => {
  test('is read as it was written, split anywhere', () => {
    fc.assert(
      fc.property(fc.array(report, { maxLength: 5 }), fc.integer({ min: 1, max: 40 }), (all, length) => {
        const stream = Buffer.concat(all.map(encodeReport))
        const reader = new ReportReader()
        const seen: Report[] = []
        for (let at = 0; at < stream.length; at += length)
          for (const one of reader.push(stream.subarray(at, at + length))) seen.push(structuredClone(one))
        expect(seen).toEqual(all)
      }),
      { numRuns: 300 },
    )
  })

  test('of anything else is refused', () => {
    const read = (bytes: Uint8Array) => refused(() => [...new ReportReader().push(bytes)])
    const failed = (text: string) => encodeFrame(21, 1, new TextEncoder().encode(text))
    expect(read(failed('ENOENT no such file'))).toBe(false)
    expect(read(failed('enoent no such file'))).toBe(true)
    expect(read(failed('ENOENT'))).toBe(true)
    expect(read(failed(`ENOENT ${'x'.repeat(500)}`))).toBe(true)
    expect(read(encodeFrame(20, 1, Uint8Array.of(0, 255)))).toBe(false)
    expect(read(encodeFrame(20, 1, Uint8Array.of(2, 0)))).toBe(true)
    expect(read(encodeFrame(20, 1, Uint8Array.of(1, 0)))).toBe(true)
    expect(read(encodeFrame(1, 0))).toBe(true)
    expect(read(encodeFrame(18, 0, Uint8Array.of(1)))).toBe(true)
  })
})

test('garbage is refused by both readers, or read, and neither ever fails otherwise', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), garbage => {
      refused(() => [...new OrderReader().push(garbage)])
      refused(() => [...new ReportReader().push(garbage)])
    }),
    { numRuns: 500 },
  )
})
