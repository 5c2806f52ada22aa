/**
 * Mutated requests and mutated answers pass one gateway that holds a canary. The canary reaches only its server, in the
 * named places. It never comes back to the program, and no record has it. `FUZZ_SECONDS` makes it run longer.
 */
import { expect, test } from 'bun:test'
import { Vault } from '../../src/gateway/secrets/vault.ts'
import { indexOf, World } from '../gateway/world.ts'
import { mutate } from './mutate.ts'
import { prng } from './prng.ts'

const REAL = 'tok_REALREALREALREALREALREALREAL0001+/=='
const FAKE = 'tok_fakefakefakefakefakefakefake9999+/=='
const SIDE_BY_SIDE = 16
const PER_WORLD = 500
const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64')
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'latin1'))

const head = (more: string, path = '/v1/x', name = 'allowed.test'): Uint8Array =>
  bytes(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\n${more}Connection: close\r\n\r\n`)
const REQUESTS: readonly [Uint8Array, ...Uint8Array[]] = [
  head(`X-Api-Key: ${FAKE}\r\n`),
  head(`Authorization: Basic ${base64(`me:${FAKE}`)}\r\n`),
  head('', `/v1/x?key=${encodeURIComponent(FAKE)}&b=c`),
  head(`X-Api-Key: ${FAKE}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n`),
  bytes(`POST /v1 HTTP/1.1\r\nHost: allowed.test\r\nX-Api-Key: ${FAKE}\r\nContent-Length: 2\r\n\r\nhi`),
  bytes(
    `POST /v1 HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: ${FAKE}\r\n\r\n`,
  ),
  head(`X-Other: ${FAKE}\r\n`),
  head(`X-Api-Key: ${FAKE}\r\n`, '/v2/x'),
]
const WORDS = [
  FAKE,
  base64(`me:${FAKE}`),
  encodeURIComponent(FAKE),
  'X-Api-Key: ',
  'Authorization: Basic ',
  '\r\n',
]
const MORE_WORDS = [
  'key=',
  '/v1/',
  '%2f',
  '..',
  'evil.test',
  'Transfer-Encoding: chunked\r\n',
  'Range: bytes=0-3\r\n',
]

const answer = (more: string, body: string): Uint8Array => bytes(`HTTP/1.1 200 OK\r\n${more}\r\n${body}`)
const chunked = (...parts: readonly string[]): string =>
  `${parts.map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n`
const ANSWERS = [
  answer('Content-Length: 45\r\n', `you: ${REAL}`),
  answer(`X-Echo: ${REAL}\r\nContent-Length: 0\r\n`, ''),
  answer(`${REAL.slice(0, 24)}: x\r\nContent-Length: 0\r\n`, ''),
  answer(
    'Transfer-Encoding: chunked\r\n',
    `${chunked(REAL.slice(0, 9), REAL.slice(9), base64(`me:${REAL}`))}X-T: ${REAL}\r\n\r\n`,
  ),
  answer('Content-Encoding: gzip\r\n', REAL),
  answer(
    '',
    `${encodeURIComponent(REAL)} ${base64(`a${REAL}`)} ${JSON.stringify({ REAL }).replaceAll('/', '\\/')}`,
  ),
  bytes(`HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 40\r\n\r\n${REAL}`),
  bytes(`HTTP/1.1 103 Hints\r\nLink: ${REAL}\r\n\r\nHTTP/1.1 200 ${REAL}\r\nContent-Length: 0\r\n\r\n`),
  bytes(`HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n${REAL}`),
]
const ANSWER_WORDS = [
  REAL,
  REAL.slice(0, 12),
  REAL.slice(12),
  base64(REAL),
  '\r\n',
  'Content-Length: 4\r\n',
  '0\r\n\r\n',
]

/** What the program or a record must never have. */
const CANARIES = [
  REAL,
  REAL.slice(4, 32),
  encodeURIComponent(REAL),
  ...['', ':', '::'].map(user => base64(user + REAL).slice(8, 46)),
]
const seen = (text: string): string | undefined => {
  const read = joined(text)
  return CANARIES.find(canary => text.includes(canary) || read.includes(canary))
}

/** The body as a program reads it: without the framing of chunks. */
function joined(text: string): string {
  const field = text.indexOf('\r\nTransfer-Encoding: chunked\r\n')
  if (field === -1) return ''
  let out = ''
  for (let at = text.indexOf('\r\n\r\n', field) + 4; ; ) {
    const [line = '', size = ''] = /^([0-9a-f]{1,8})\r\n/.exec(text.slice(at, at + 12)) ?? []
    const length = Number.parseInt(size, 16)
    if (!(length > 0)) return out
    out += text.slice(at + line.length, at + line.length + length)
    at += line.length + length + 2
  }
}

async function session(world: World, seed: number, n: number): Promise<void> {
  const random = prng(seed, n)
  const isWhole = random.below(2) === 0
  const words = [...WORDS, ...MORE_WORDS].map(bytes)
  const request = isWhole ? random.pick(REQUESTS) : mutate(random, REQUESTS, words, 2048)
  const [name, at] = random.below(8) === 0 ? (['evil.test', 80] as const) : (['allowed.test', 80] as const)
  const client = await world.byName(name, at)
  client.send(request)
  const over = new Promise<void>(resolve => client.socket.once('end', resolve).once('close', resolve))
  await Promise.race([over, Bun.sleep(150)])
  client.socket.destroy()
  const found = seen(client.text)
  if (found !== undefined)
    throw new Error(`FUZZ_SEED=${seed}:${n}: the program has ${found} in ${JSON.stringify(client.text)}`)
}

async function play(seed: number, first: number): Promise<void> {
  const secrets = [
    {
      name: 'KEY',
      to: ['http://allowed.test:80/v1/**'],
      in: ['header:x-api-key', 'header:authorization', 'query:key'],
    },
  ]
  const world = await World.start({
    allow: ['allowed.test:80', 'evil.test:80'],
    vault: new Vault(indexOf(secrets), [{ name: 'KEY', value: REAL, placeholder: FAKE }]),
    secrets,
    limits: { denialBurst: 1_000_000, denialsPerSecond: 1_000_000, graceMs: 20, lingerMs: 50, headMs: 60 },
  })
  let answered = first * 7
  const reply = (): Uint8Array =>
    mutate(prng(seed ^ 0x5a5a, ++answered), ANSWERS, ANSWER_WORDS.map(bytes), 2048)
  world.up.behave = socket => {
    const [whole, cut] = [reply(), answered % 40]
    socket.write(whole.subarray(0, cut))
    socket.end(whole.subarray(cut))
  }
  let next = first
  await Promise.all(
    Array.from({ length: SIDE_BY_SIDE }, async () => {
      while (next < first + PER_WORLD) await session(world, seed, next++)
    }),
  )
  const { audit, up, evil } = world
  await world.close()
  expect(seen(JSON.stringify(audit))).toBeUndefined()
  expect(seen(evil.text)).toBeUndefined()
  // The twin: the server did get the value.
  expect(up.text).toContain(REAL)
}

const seconds = Number(process.env['FUZZ_SECONDS'] ?? 3)
test(
  'no mutated request or answer brings the canary inside, to another host or into a record',
  async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const end = performance.now() + seconds * 1000
    let played = 0
    for (; performance.now() < end; played += PER_WORLD) await play(seed, played)
    expect(played).toBeGreaterThan(0)
    if (process.env['FUZZ_SECONDS'] !== undefined) process.stderr.write(`${played} requests and answers\n`)
  },
  (seconds + 60) * 1000,
)
