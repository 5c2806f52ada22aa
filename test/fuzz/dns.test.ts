import { NameTable } from '../../src/gateway/dns/names.ts'
import { answerQuery } from '../../src/gateway/dns/stub.ts'
import { fuzz } from './fuzz.ts'

const hex = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex')
const NAME = '07616c6c6f776564047465737400'
const SEEDS = [
  hex(`1234 0100 0001 0000 0000 0000 ${NAME} 0001 0001`),
  hex(`1234 0120 0001 0000 0000 0001 ${NAME} 0001 0001 00 0029 1000 0000 8000 0000`),
  hex(
    `1234 0120 0001 0000 0000 0001 ${NAME} 001c 0001 00 0029 04d0 0000 0000 000c 000a 0008 0102030405060708`,
  ),
  hex('0001 0000 0001 0000 0000 0000 096c6f63616c686f737400 0001 0001'),
  hex('0001 0000 0001 0000 0000 0000 00 0002 0001'),
  hex('0001 0000 0001 0000 0000 0000 045f736970045f756470047465737400 0021 0001'),
  hex('0001 0100 0001 0000 0000 0000 01610162c00c 0001 0001'),
  hex('0001 2800 0001 0000 0000 0000 047465737400 0006 0001'),
]
const WORDS = [
  NAME,
  'c00c',
  'c000',
  '3f',
  '40',
  '0029',
  '0001',
  '001c',
  '00ff',
  '8180',
  '000a0008',
  '01',
  '00',
].map(hex)

const check = (holds: boolean, claim: string): void => {
  if (!holds) throw new Error(claim)
}

/** The bytes after a plain name at the start of the question, by an independent parser. */
function questionEnd(query: Buffer): number {
  let at = 12
  for (let length = query[at] ?? 0; length !== 0; length = query[at] ?? 0) {
    check(length < 64, 'a name with a pointer was answered')
    at += length + 1
  }
  check(at - 12 < 255, 'a name that is too long was answered')
  return at + 5
}

fuzz('a DNS answer repeats id and question, has at most one address, and hardly outgrows the query', {
  seeds: SEEDS,
  dictionary: WORDS,
  maxBytes: 1400,
  run: input => {
    const query = Buffer.from(input)
    const names = new NameTable({ maxNames: 64 })
    const { reply, problem } = answerQuery(query, names)
    if (reply === undefined) return check(problem === 'malformed', 'silence without a reason')
    check(query.length >= 12 && (query[2] ?? 0) < 128, 'an answer was answered')
    check(reply.readUInt16BE(0) === query.readUInt16BE(0), 'the id differs')
    check((reply[2] ?? 0) >= 128 && reply.length <= 512, 'no answer, or one too long')
    check(reply.length <= query.length + 16, 'an answer amplifies')
    check(reply.readUInt16BE(6) <= 1 && reply.readUInt16BE(8) === 0, 'more than one answer')
    if (reply.readUInt16BE(4) === 0) return check(reply.length <= 23, 'a refusal with contents')

    const end = questionEnd(query)
    check(reply.subarray(12, end).equals(query.subarray(12, end)), 'the question differs')
    const answers = reply.readUInt16BE(6)
    const additional = reply.readUInt16BE(10)
    check(reply.length === end + answers * 16 + additional * 11, 'the counts do not add up')
    check(additional === query.readUInt16BE(10), 'an OPT was invented or forgotten')
    check((reply.readUInt16BE(2) & 15) === 0 || answers === 0, 'an address with an error')
    if (answers === 0)
      return check(names.size === 0 || problem === 'pool', 'a name was kept without an answer')
    check(query.readUInt32BE(end - 4) === 0x00010001, 'an address for another type or class')
    const address = reply.readUInt32BE(end + 12)
    check(address === 0x7f000001 || address >>> 17 === 0xc612 >>> 1, 'an address outside of the pool')
  },
})
