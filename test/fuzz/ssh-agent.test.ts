import { expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { number, packet, text } from '../../src/protocol/ssh-packets.ts'
import { AgentFilter } from '../../src/ssh-agent/agent-filter.ts'
import { sshFingerprint } from '../../src/ssh-agent/fingerprint.ts'
import { mutate } from './mutate.ts'
import { prng } from './prng.ts'

const RUNS = 100_000

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
const SERVER = Buffer.concat([text('ssh-ed25519'), text(raw)])
const MINE = Buffer.concat([text('ssh-ed25519'), text(Buffer.alloc(32, 1))])
const OTHER = Buffer.concat([text('ssh-ed25519'), text(Buffer.alloc(32, 2))])
const SESSION = Buffer.alloc(32, 7)

const message = (kind: number, ...fields: readonly Buffer[]): Buffer => packet(kind, ...fields).subarray(4)
const proof = Buffer.concat([text('ssh-ed25519'), text(sign(null, SESSION, privateKey))])
const BIND = message(
  27,
  text('session-bind@openssh.com'),
  text(SERVER),
  text(SESSION),
  text(proof),
  Buffer.of(0),
)
const LOGIN = Buffer.concat([
  text(SESSION),
  Buffer.of(50),
  text('git'),
  text('ssh-connection'),
  text('publickey'),
  Buffer.of(1),
  text('ssh-ed25519'),
  text(MINE),
])
const SIGNATURE = Buffer.concat([
  Buffer.from('SSHSIG'),
  text('git'),
  text(''),
  text('sha512'),
  text(Buffer.alloc(64)),
])
const ask = (data: Buffer): Buffer => message(13, text(MINE), text(data), number(0))
const SEEDS = [
  message(11),
  BIND,
  ask(LOGIN),
  ask(SIGNATURE),
  message(18, text(MINE)),
  message(19),
  message(22, text('p')),
]
const WORDS = [
  MINE,
  OTHER,
  SERVER,
  SESSION,
  number(0),
  number(0xffff_ffff),
  Buffer.of(11),
  Buffer.of(13),
  Buffer.of(17),
]

/** Whether the host's agent may see this message. */
function mayPass(sent: Buffer): boolean {
  if (sent.equals(message(11)) || sent.equals(BIND)) return true
  const begin = Buffer.concat([Buffer.of(13), text(MINE)])
  const data = sent.subarray(begin.length + 4)
  const isLogin = data.indexOf(text(SESSION)) === 0 && data.includes(text(MINE))
  const isSignature = data.indexOf(Buffer.concat([Buffer.from('SSHSIG'), text('git')])) === 0
  return sent.indexOf(begin) === 0 && (isLogin || isSignature)
}

test(`of ${RUNS} messages of a client, the host’s agent sees only those that were granted`, async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  let [passed, answered] = [0, 0]
  for (let n = 0; n < RUNS; n++) {
    const sent: Buffer[] = []
    const filter = new AgentFilter({
      grant: {
        keys: [sshFingerprint(MINE)],
        hostKeys: new Map([[SERVER.toString('base64'), 'git.example:22']]),
        sign: ['git'],
      },
      audit: { record: () => undefined },
      ask: async one => {
        sent.push(one)
        return message(14, text('signature'))
      },
    })
    const input = SEEDS[n] ?? Buffer.from(mutate(prng(seed, n), SEEDS, WORDS, 4096))
    if (n % 2 === 0) await filter.answer(BIND)
    const reply = await filter.answer(input)
    if ([5, 6, 12, 14].includes(reply[0] ?? 0)) answered++
    passed += sent.filter(one => one.equals(input)).length
    if (!sent.every(mayPass)) throw new Error(`seed ${seed}, message ${n}: ${input.toString('hex')}`)
  }
  expect(answered).toBe(RUNS)
  expect(passed).toBeGreaterThan(RUNS / 1000)
}, 120_000)
