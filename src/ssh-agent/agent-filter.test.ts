import { expect, test } from 'bun:test'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { AuditEventInput } from '../audit/event.ts'
import { number, packet, text } from '../protocol/ssh-packets.ts'
import { AgentFilter } from './agent-filter.ts'
import { sshFingerprint } from './fingerprint.ts'

interface Pair {
  readonly blob: Buffer
  readonly key: KeyObject
  /** Its SSH signature. */
  sign(bytes: Buffer): Buffer
}

function ed25519(): Pair {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const { x = '' } = publicKey.export({ format: 'jwk' })
  const blob = Buffer.concat([text('ssh-ed25519'), text(Buffer.from(x, 'base64url'))])
  const made = (bytes: Buffer): Buffer =>
    Buffer.concat([text('ssh-ed25519'), text(sign(null, bytes, privateKey))])
  return { blob, key: privateKey, sign: made }
}

const [mine, other, server, stranger] = [ed25519(), ed25519(), ed25519(), ed25519()]
const SESSION = Buffer.alloc(32, 7)

const message = (kind: number, ...fields: readonly Buffer[]): Buffer => packet(kind, ...fields).subarray(4)
const bind = (by: Pair, { session = SESSION, forwards = 0, signer = by } = {}): Buffer =>
  message(
    27,
    text('session-bind@openssh.com'),
    text(by.blob),
    text(session),
    text(signer.sign(session)),
    Buffer.of(forwards),
  )
const login = (key: Buffer, session = SESSION, hostKey?: Buffer): Buffer =>
  Buffer.concat([
    text(session),
    Buffer.of(50),
    text('git'),
    text('ssh-connection'),
    text(hostKey === undefined ? 'publickey' : 'publickey-hostbound-v00@openssh.com'),
    Buffer.of(1),
    text('ssh-ed25519'),
    text(key),
    ...(hostKey === undefined ? [] : [text(hostKey)]),
  ])
const signature = (namespace: string): Buffer =>
  Buffer.concat([Buffer.from('SSHSIG'), text(namespace), text(''), text('sha512'), text(Buffer.alloc(64))])
const ask = (key: Buffer, data: Buffer): Buffer => message(13, text(key), text(data), number(0))

const SIGNED = message(14, text('signature'))
const [FAILURE, SUCCESS] = [5, 6]

function begin() {
  const reached: Buffer[] = []
  const records: AuditEventInput[] = []
  const filter = new AgentFilter({
    grant: {
      keys: [sshFingerprint(mine.blob)],
      hostKeys: new Map([[server.blob.toString('base64'), 'git.example:22']]),
      sign: ['git'],
    },
    audit: { record: event => void records.push(event) },
    ask: async sent => {
      reached.push(sent)
      if (sent[0] !== 11) return SIGNED
      return message(12, number(2), text(other.blob), text('other'), text(mine.blob), text('mine'))
    },
  })
  const kindOf = async (sent: Buffer): Promise<number> => (await filter.answer(sent))[0] ?? -1
  return { filter, reached, records, kindOf }
}

test('a login is signed for a granted server, with a record, and for no other', async () => {
  const { reached, records, kindOf } = begin()
  expect(await kindOf(ask(mine.blob, login(mine.blob)))).toBe(FAILURE)
  expect(await kindOf(bind(server))).toBe(SUCCESS)
  for (const data of [login(mine.blob), login(mine.blob, SESSION, server.blob)])
    expect(await kindOf(ask(mine.blob, data))).toBe(14)
  const target = { kind: 'agent-signed', key: sshFingerprint(mine.blob), target: 'git.example:22' }
  expect(records.slice(1)).toEqual([target, target] as never)
  const before = reached.length
  for (const data of [
    login(mine.blob, Buffer.alloc(32, 8)),
    login(mine.blob, SESSION, stranger.blob),
    login(other.blob),
    Buffer.concat([login(mine.blob), Buffer.of(0)]),
    Buffer.from('anything'),
    Buffer.alloc(0),
  ])
    expect(await kindOf(ask(mine.blob, data))).toBe(FAILURE)
  expect(await kindOf(ask(other.blob, login(other.blob)))).toBe(FAILURE)
  expect(reached).toHaveLength(before)
  expect(records.at(-1)).toMatchObject({ kind: 'agent-refused', key: sshFingerprint(other.blob) })
})

test.each([
  ['another server', bind(stranger)],
  ['a server whose signature is another’s', bind(server, { signer: stranger })],
  ['a forwarded agent', bind(server, { forwards: 1 })],
])('a connection that was bound to %s signs no login any more', async (_, first) => {
  const { reached, kindOf } = begin()
  expect(await kindOf(first)).toBe(FAILURE)
  expect(await kindOf(bind(server))).toBe(SUCCESS)
  expect(await kindOf(ask(mine.blob, login(mine.blob)))).toBe(FAILURE)
  expect(reached.map(([kind]) => kind)).toEqual([27])
})

test('signatures are made for granted purposes, and only granted keys are listed', async () => {
  const { filter, records, kindOf } = begin()
  expect(await kindOf(ask(mine.blob, signature('git')))).toBe(14)
  expect(records).toMatchObject([{ kind: 'agent-signed', target: 'signature: git' }])
  expect(await kindOf(ask(mine.blob, signature('file')))).toBe(FAILURE)
  expect(await kindOf(ask(other.blob, signature('git')))).toBe(FAILURE)
  expect(await filter.answer(message(11))).toEqual(message(12, number(1), text(mine.blob), text('mine')))
})

test('nothing can be added, removed, locked or extended', async () => {
  const { reached, kindOf } = begin()
  const kinds = Array.from({ length: 256 }, (_, kind) => kind).filter(kind => kind !== 11)
  for (const kind of kinds)
    expect(await kindOf(message(kind, text(mine.blob), text('x'), number(0)))).toBe(FAILURE)
  expect(await kindOf(message(27, text('query')))).toBe(FAILURE)
  expect(await kindOf(message(11, text('more')))).toBe(FAILURE)
  expect(reached).toEqual([])
})

test('a signature that cannot be recorded is not made', async () => {
  const reached: Buffer[] = []
  const fails = (): never => {
    throw new Error('the disk is full')
  }
  const filter = new AgentFilter({
    grant: { keys: [sshFingerprint(mine.blob)], hostKeys: new Map(), sign: ['git'] },
    audit: { record: fails },
    ask: async sent => {
      reached.push(sent)
      return SIGNED
    },
  })
  expect((await filter.answer(ask(mine.blob, signature('git'))))[0]).toBe(FAILURE)
  expect(reached).toEqual([])
})
