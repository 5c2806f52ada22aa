import { describe, expect, test } from 'bun:test'
import { NameTable } from './names.ts'
import { answerQuery, type DnsAnswer } from './stub.ts'

interface Ask {
  readonly name?: string
  readonly type?: number
  readonly class?: number
  readonly flags?: number
  readonly counts?: readonly [number, number, number, number]
  /** Bytes of the name, for names that are not text. */
  readonly wire?: Buffer
  readonly behind?: Buffer
}

const wireName = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split('.')
      .filter(Boolean)
      .map(l => Buffer.concat([Buffer.of(l.length), Buffer.from(l, 'latin1')])),
    Buffer.of(0),
  ])
const words = (...values: number[]) => Buffer.from(values.flatMap(v => [v >> 8, v & 255]))

function ask({
  name = 'allowed.test',
  type = 1,
  class: klass = 1,
  flags = 0x0100,
  counts,
  wire,
  behind,
}: Ask): Buffer {
  const header = words(0x1234, flags, ...(counts ?? [1, 0, 0, behind === undefined ? 0 : 1]))
  return Buffer.concat([header, wire ?? wireName(name), words(type, klass), behind ?? Buffer.alloc(0)])
}

const opt = (version = 0, flags = 0, options = Buffer.alloc(0), size = 4096): Buffer =>
  Buffer.concat([Buffer.of(0), words(41, size, version, flags, options.length), options])

function answer(
  query: Ask,
  names = new NameTable(),
): DnsAnswer & { rcode: number; answers: number; bytes: Buffer } {
  const found = answerQuery(ask(query), names)
  const bytes = found.reply ?? Buffer.alloc(12)
  return { ...found, bytes, rcode: bytes.readUInt16BE(2) & 15, answers: bytes.readUInt16BE(6) }
}

describe('an A query', () => {
  test('for any name gets an address of the pool, with the id and question of the query', () => {
    const names = new NameTable()
    const query = ask({ name: 'AlloWed.tEst' })
    const { reply } = answerQuery(query, names)
    expect(reply?.subarray(12, query.length)).toEqual(query.subarray(12))
    expect(reply?.subarray(0, 12)).toEqual(words(0x1234, 0x8180, 1, 1, 0, 0))
    expect([...(reply?.subarray(query.length) ?? [])]).toEqual([
      0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1,
    ])
  })

  test('for one name in any case gets one address, for another name another', () => {
    const names = new NameTable()
    const address = (name: string): string => answer({ name }, names).bytes.subarray(-4).join('.')
    expect(address('allowed.test')).toBe(address('ALLOWED.TEST'))
    expect(address('other.test')).not.toBe(address('allowed.test'))
    expect(names.size).toBe(2)
  })

  test('for a name of one label, of the host’s services, or 253 long is like any other', () => {
    const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`
    for (const name of ['redis', 'host.pen.internal', long, 'xn--bcher-kva.example'])
      expect(answer({ name })).toMatchObject({ rcode: 0, answers: 1, problem: undefined })
  })

  test('for localhost gets loopback and takes no address of the pool', () => {
    const names = new NameTable()
    for (const name of ['localhost', 'x.LocalHost'])
      expect(answer({ name }, names).bytes.subarray(-4).join('.')).toBe('127.0.0.1')
    expect(names.size).toBe(0)
  })

  test('for an invalid host name gets NXDOMAIN', () => {
    for (const name of [
      '-sip.example.com',
      '127.1',
      '1.2.3.4',
      '-x.test',
      'a b.test',
      'b\u00fccher.test',
      'xn--99999999.test',
    ])
      expect(answer({ name })).toMatchObject({ rcode: 3, answers: 0, problem: 'invalid-name' })
    expect(answer({ name: '-sip.example.com' }).raw).toBe('-sip.example.com')
  })

  test('for a label with a dot or a NUL is not a query for the name it looks like', () => {
    const names = new NameTable()
    const dotted = Buffer.concat([Buffer.of(12), Buffer.from('allowed.test'), Buffer.of(0)])
    expect(answer({ wire: dotted }, names)).toMatchObject({ rcode: 3, problem: 'invalid-name' })
    const nul = Buffer.concat([
      Buffer.of(8),
      Buffer.from('allowed\0'),
      Buffer.of(4),
      Buffer.from('test'),
      Buffer.of(0),
    ])
    expect(answer({ wire: nul }, names)).toMatchObject({ rcode: 3 })
    expect(names.size).toBe(0)
  })

  test('with a used-up pool gets SERVFAIL, and known names keep their address', () => {
    const names = new NameTable({ maxNames: 2, reserve: 0 })
    for (const name of ['a.test', 'b.test']) expect(answer({ name }, names).answers).toBe(1)
    expect(answer({ name: 'c.test' }, names)).toMatchObject({
      rcode: 2,
      answers: 0,
      problem: 'pool',
      raw: 'c.test',
    })
    expect(answer({ name: 'a.test' }, names).answers).toBe(1)
  })
})

describe('other queries', () => {
  test('AAAA, HTTPS, SRV, TXT, PTR, ANY and unknown types get NODATA: no error, no answer', () => {
    const names = new NameTable()
    for (const type of [28, 65, 33, 16, 12, 255, 0, 65280, 252])
      expect(answer({ type, name: '_http._tcp.allowed.test' }, names)).toMatchObject({ rcode: 0, answers: 0 })
    expect(answer({ type: 28, name: 'localhost' })).toMatchObject({ rcode: 0, answers: 0 })
    expect(answer({ name: '' })).toMatchObject({ rcode: 0, answers: 0 })
    expect(names.size).toBe(0)
  })

  test('another class is REFUSED, another operation NOTIMP', () => {
    expect(answer({ class: 3, name: 'version.bind', type: 16 })).toMatchObject({ rcode: 5 })
    expect(answer({ class: 255 })).toMatchObject({ rcode: 5, answers: 0 })
    for (const flags of [0x0800, 0x1000, 0x2000, 0x2800, 0x7800])
      expect(answer({ flags })).toMatchObject({ rcode: 4, bytes: { length: 12 } })
  })

  test('an answer is never answered', () => {
    for (const flags of [0x8000, 0x8180, 0xffff]) expect(answer({ flags }).reply).toBeUndefined()
  })

  test('no or two questions, answers and authority in a query are FORMERR', () => {
    for (const counts of [
      [0, 0, 0, 0],
      [2, 0, 0, 0],
      [1, 1, 0, 0],
      [1, 0, 1, 0],
      [1, 0, 0, 2],
      [65535, 0, 0, 0],
    ] as const)
      expect(answer({ counts })).toMatchObject({ rcode: 1, bytes: { length: 12 } })
  })

  test('only the flags "recursion desired" and "checking disabled" are returned', () => {
    expect(answer({ flags: 0x07f0 }).bytes.readUInt16BE(2)).toBe(0x8190)
    expect(answer({ flags: 0x0000 }).bytes.readUInt16BE(2)).toBe(0x8080)
  })
})

describe('OPT', () => {
  test('gets one OPT without options and with the same DO bit', () => {
    const plain = answer({ behind: opt() }).bytes
    expect(plain.readUInt16BE(10)).toBe(1)
    expect([...plain.subarray(-11)]).toEqual([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0])
    const cookie = Buffer.concat([words(10, 8), Buffer.alloc(8, 7)])
    const asked = answer({ behind: opt(0, 0x8000, cookie) })
    expect(asked.answers).toBe(1)
    expect([...asked.bytes.subarray(-11)]).toEqual([0, 0, 41, 4, 208, 0, 0, 128, 0, 0, 0])
    expect(answer({}).bytes.readUInt16BE(10)).toBe(0)
  })

  test('of another version gets BADVERS', () => {
    const { bytes, rcode } = answer({ behind: opt(1) })
    expect(rcode).toBe(0)
    expect([...bytes.subarray(12)]).toEqual([0, 0, 41, 4, 208, 1, 0, 0, 0, 0, 0])
  })

  test('with wrong option lengths, or another record in its place, is malformed', () => {
    const bad = [
      opt(0, 0, words(10, 9)),
      opt(0, 0, Buffer.of(0, 10, 0)),
      opt().subarray(0, 10),
      Buffer.concat([opt(), Buffer.of(0)]),
      Buffer.concat([Buffer.of(0), words(250, 255, 0, 0, 0)]),
      Buffer.concat([Buffer.of(1, 97), opt()]),
      Buffer.of(0xc0, 12),
    ]
    for (const behind of bad) expect(answer({ behind }).reply).toBeUndefined()
  })
})

describe('malformed messages get no answer', () => {
  const silent = (bytes: Buffer): void =>
    expect(answerQuery(bytes, new NameTable())).toEqual({ reply: undefined, problem: 'malformed' })

  test('cut anywhere', () => {
    const whole = ask({ behind: opt() })
    for (let length = 0; length < whole.length; length++) silent(whole.subarray(0, length))
    expect(answerQuery(whole, new NameTable()).reply).toBeDefined()
  })

  test('with anything behind', () => {
    silent(Buffer.concat([ask({}), Buffer.of(0)]))
    silent(Buffer.concat([ask({}), Buffer.alloc(500)]))
  })

  test('with a pointer in the name: to itself, ahead, back into the header, after a label', () => {
    for (const wire of [
      [0xc0, 12],
      [0xc0, 0],
      [0xc0, 40],
      [0xff, 0xff],
      [1, 97, 0xc0, 12],
      [0x40, 1],
      [0x80, 1],
    ])
      silent(ask({ wire: Buffer.from(wire) }))
  })

  test('with a name longer than 255 bytes, or a message longer than any query', () => {
    const labels = (count: number) =>
      Buffer.concat([...Array(count).fill(wireName('a').subarray(0, 2)), Buffer.of(0)])
    expect(answer({ wire: labels(127) }).answers).toBe(1)
    silent(ask({ wire: labels(128) }))
    expect(answer({ behind: opt(0, 0, Buffer.concat([words(12, 1000), Buffer.alloc(1000)])) }).answers).toBe(
      1,
    )
    silent(ask({ behind: opt(0, 0, Buffer.concat([words(12, 1300), Buffer.alloc(1300)])) }))
  })
})
