import { afterAll, expect, test } from 'bun:test'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { attributes, long, number, PacketReader, packet, text } from '../protocol/ssh-packets.ts'
import { SftpFiles } from './sftp-files.ts'
import { answer } from './sftp-server.ts'

const root = mkdtempSync(join(tmpdir(), 'pen-sftp-'))
afterAll(() => rmSync(root, { recursive: true }))

const files = new SftpFiles()
const ID = 7

/** The kind of the answer, and its fields after the id. */
function ask(
  kind: number,
  ...fields: readonly Buffer[]
): { readonly kind: number; readonly reply: PacketReader } {
  const whole = packet(kind, number(ID), ...fields)
  const reply = new PacketReader(answer(new PacketReader(whole.subarray(4)), files).subarray(4))
  const answered = reply.byte()
  expect(reply.number()).toBe(ID)
  return { kind: answered, reply }
}

const STATUS = 101
const status = (kind: number, ...fields: readonly Buffer[]): number => {
  const { kind: answered, reply } = ask(kind, ...fields)
  expect(answered).toBe(STATUS)
  return reply.number()
}
const NOTHING = attributes({})
const at = (name: string | Buffer): Buffer =>
  text(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)]))

function open(kind: number, ...fields: readonly Buffer[]): Buffer {
  const { kind: answered, reply } = ask(kind, ...fields)
  expect(answered).toBe(102)
  return text(reply.bytes())
}

test('a file with a non-UTF-8 name is written, listed, read and removed', () => {
  const name = Buffer.from([0x61, 0xff, 0xfe])
  const handle = open(3, at(name), number(2 | 8 | 16), attributes({ mode: 0o640 }))
  expect(status(6, handle, long(3n), text('def'))).toBe(0)
  expect(status(6, handle, long(0n), text('abc'))).toBe(0)
  expect(status(4, handle)).toBe(0)
  expect(status(4, handle)).toBe(4)
  const directory = open(11, text(root))
  const { reply } = ask(12, directory)
  expect([reply.number(), reply.bytes().equals(name)]).toEqual([1, true])
  expect(status(12, directory)).toBe(1)
  status(4, directory)
  const reader = open(3, at(name), number(1), NOTHING)
  expect(ask(5, reader, long(1n), number(4)).reply.bytes().toString()).toBe('bcde')
  expect(status(5, reader, long(6n), number(4))).toBe(1)
  status(4, reader)
  expect(status(13, at(name))).toBe(0)
  expect(status(13, at(name))).toBe(2)
})

test('a rename never replaces a file, and a POSIX rename does', () => {
  for (const name of ['one', 'two']) writeFileSync(join(root, name), name)
  expect(status(18, at('one'), at('two'))).toBe(4)
  expect(status(200, text('posix-rename@openssh.com'), at('one'), at('two'))).toBe(0)
  expect(readFileSync(join(root, 'two'), 'utf8')).toBe('one')
  expect(status(20, text('the target'), at('link'))).toBe(0)
  expect(readlinkSync(join(root, 'link'))).toBe('the target')
  expect(
    status(9, at('two'), attributes({ mode: 0o600, size: 2n, times: { accessed: 5, modified: 6 } })),
  ).toBe(0)
  const { mode, size, mtimeMs } = statSync(join(root, 'two'))
  expect([mode & 0o777, size, mtimeMs]).toEqual([0o600, 2, 6000])
  for (const name of readdirSync(root)) rmSync(join(root, name))
})

test('a large directory comes in pages, and the real path of a new file is known', () => {
  for (let i = 0; i < 250; i++) writeFileSync(join(root, `f${i}`), '')
  const directory = open(11, text(root))
  const counts = [1, 2, 3].map(() => ask(12, directory).reply.number())
  expect(counts).toEqual([100, 100, 50])
  const real = ask(16, text(`${root}/../${root.split('/').at(-1)}/new`)).reply
  expect([real.number(), real.text()]).toEqual([1, join(root, 'new')])
  expect(status(16, at('absent/new'))).toBe(2)
  expect(status(4, directory)).toBe(0)
})

test('unknown requests are refused, and a field that is longer than its packet ends the session', () => {
  expect(status(99)).toBe(8)
  expect(status(200, text('copy-data'))).toBe(8)
  expect(() => ask(17, number(1000), Buffer.from('short'))).toThrow('longer than its packet')
  expect(() => ask(9, at('x'), number(0x8000_0000), number(2 ** 31))).toThrow('longer than its packet')
})
