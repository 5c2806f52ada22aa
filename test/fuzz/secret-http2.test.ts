/**
 * Random calls and answers of HTTP/2 pass one gateway that holds a canary. The server gets the canary in the named field
 * only, and the program never has it back: not in fields, in bodies however they are cut, or in trailers.
 */
import { expect, test } from 'bun:test'
import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import { connect as connectTls } from 'node:tls'
import { Vault } from '../../src/gateway/secrets/vault.ts'
import { newAuthority } from '../gateway/authorities.ts'
import { host, indexOf, World } from '../gateway/world.ts'
import { type Prng, prng } from './prng.ts'

const REAL = 'tok_REALREALREALREALREALREALREAL0001'
const FAKE = 'tok_fakefakefakefakefakefakefake9999'
const CANARY = /REALREALREALREAL|realrealrealreal/
const SIDE_BY_SIDE = 16
/** An error code of HTTP/2. */
const CANCEL = 8
const base64 = (text: string): string => Buffer.from(text).toString('base64')

const FIELDS = [
  'x-api-key',
  'authorization',
  'x-other',
  'cookie',
  'te',
  'trailer',
  'range',
  'x-original-url',
] as const
const TEXTS = [
  FAKE,
  `Bearer ${FAKE}`,
  `Basic ${base64(`me:${FAKE}`)}`,
  'plain',
  'trailers',
  'x-sum',
  `a${FAKE}b`,
] as const
const PATHS = [
  '/v1/x',
  `/v1/${FAKE}`,
  `/v1/x?key=${FAKE}`,
  '/v1/%2e%2e/x',
  '/v2/x',
  '/v1//x',
  '/v1/x?a=b',
] as const
const ECHOES = [
  REAL,
  base64(`me:${REAL}`),
  encodeURIComponent(REAL),
  JSON.stringify({ REAL }),
  REAL.toUpperCase().slice(0, 8),
  'nothing',
] as const
const ANSWER_FIELDS = [
  'x-echo',
  REAL.toLowerCase(),
  'content-encoding',
  'grpc-encoding',
  'x-pen-denied',
  'link',
] as const

function some(random: Prng, names: readonly [string, ...string[]], texts: readonly [string, ...string[]]) {
  const count = random.below(4)
  return Object.fromEntries(Array.from({ length: count }, () => [random.pick(names), random.pick(texts)]))
}

/** Writes a body in random pieces. */
function writeCut(random: Prng, stream: ServerHttp2Stream, text: string): void {
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(20)
    stream.write(text.slice(at, at + size))
    at += size
  }
  stream.end()
}

interface Seen {
  /** What the server got: the fields of each call, with its trailers. */
  readonly fields: string[]
  readonly keys: unknown[]
}

async function serve(world: World, seed: number, seen: Seen, pair: { key: string; cert: string }) {
  const server = createSecureServer(pair)
  let calls = 0
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const random = prng(seed ^ 0x77, ++calls)
    const { 'x-api-key': key, ...others } = headers
    seen.keys.push(key)
    seen.fields.push(JSON.stringify(others))
    stream.on('error', () => undefined).on('trailers', found => seen.fields.push(JSON.stringify(found)))
    stream.respond({ ':status': 200, ...some(random, ANSWER_FIELDS, ECHOES) }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers(some(random, ANSWER_FIELDS, ECHOES)))
    const body = Array.from({ length: 1 + random.below(4) }, () => random.pick(ECHOES)).join(' ')
    // It answers before the end of the call, ends the call, ends all calls, or waits for the end.
    const how = random.below(60)
    if (how < 20) writeCut(random, stream, body)
    else if (how < 24) stream.close(CANCEL)
    else if (how === 24) stream.session?.destroy()
    else stream.resume().on('end', () => writeCut(random, stream, body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const at = server.address()
  world.up.close()
  Object.defineProperty(world.up, 'port', { value: typeof at === 'object' && at !== null ? at.port : 0 })
  return server
}

interface Dialled {
  readonly session: ClientHttp2Session
  /** Streams of a session that ended may not say so themselves. */
  readonly ended: Promise<void>
}

async function dial(world: World, ca: string): Promise<Dialled> {
  const { socket } = await world.byName('allowed.test', 443)
  socket.removeAllListeners('data')
  const secure = connectTls({ socket, servername: 'allowed.test', ca, ALPNProtocols: ['h2'] })
  await new Promise<void>((resolve, reject) => secure.once('secureConnect', resolve).once('error', reject))
  const session = connect('https://allowed.test', { createConnection: () => secure })
  session.on('error', () => undefined)
  socket.once('close', () => session.destroy())
  return { session, ended: new Promise(resolve => session.once('close', () => resolve())) }
}

/** Everything that the program gets. */
function call({ session, ended }: Dialled, random: Prng): Promise<string> {
  const fields = some(random, FIELDS, TEXTS)
  const waitForTrailers = random.below(3) === 0
  const head = { ':method': 'POST', ':path': random.pick(PATHS), ...fields }
  const stream = session.request(head, { waitForTrailers })
  const got: string[] = []
  const note = (found: IncomingHttpHeaders): void => void got.push(JSON.stringify(found))
  stream.on('response', note).on('trailers', note).on('headers', note)
  let body = ''
  stream.on('data', (piece: Buffer) => {
    body += piece.toString()
  })
  stream.on('error', () => undefined)
  stream.on('wantTrailers', () =>
    stream.sendTrailers(some(random, ['x-sum', 'x-http-method', 'cookie'], TEXTS)),
  )
  if (random.below(8) === 0) setTimeout(() => stream.close(CANCEL), random.below(5))
  else stream.end(random.pick([FAKE, 'body', 'x'.repeat(50_000)]))
  const over = new Promise<void>(resolve => stream.on('close', resolve))
  return Promise.race([over, ended, Bun.sleep(2000)]).then(() => [...got, body].join('\n'))
}

const seconds = Number(process.env['FUZZ_SECONDS'] ?? 3)
test(
  'no random call or answer of HTTP/2 brings the canary inside, into another field or into a record',
  async () => {
    const [authority, outside] = [newAuthority('inside'), newAuthority('outside')]
    const secrets = [{ name: 'KEY', to: ['allowed.test:443/v1/**'], in: ['header:x-api-key'] }]
    const vault = new Vault(indexOf(secrets), [{ name: 'KEY', value: REAL, placeholder: FAKE }])
    const limits = { denialBurst: 1_000_000, denialsPerSecond: 1_000_000 }
    const allow = ['POST allowed.test/**']
    const world = await World.start({ allow, authority, outside, vault, secrets, limits })
    const seed = Math.floor(Math.random() * 2 ** 31)
    const seen: Seen = { fields: [], keys: [] }
    const server = await serve(world, seed, seen, outside.leafFor(host('allowed.test')))
    const end = performance.now() + seconds * 1000
    let calls = 0
    try {
      for (let dialled = await dial(world, authority.certificate); performance.now() < end; ) {
        const from = calls
        calls += SIDE_BY_SIDE
        const numbers = Array.from({ length: SIDE_BY_SIDE }, (_, i) => from + i)
        const texts = await Promise.all(numbers.map(n => call(dialled, prng(seed, n))))
        for (const [i, text] of texts.entries())
          if (CANARY.test(text) || text.includes(base64(`me:${REAL}`).slice(4, 44)))
            throw new Error(`FUZZ_SEED=${seed}:${from + i}: the program has ${text}`)
        if (calls % 800 === 0 || dialled.session.destroyed) {
          dialled.session.destroy()
          dialled = await dial(world, authority.certificate)
        }
      }
      expect(JSON.stringify(world.audit)).not.toMatch(CANARY)
      expect(seen.fields.filter(text => CANARY.test(text))).toEqual([])
      // The twin: the server did get the value.
      expect(seen.keys).toContain(REAL)
    } finally {
      server.close()
      await world.close()
    }
    if (process.env['FUZZ_SECONDS'] !== undefined) process.stderr.write(`${calls} calls and answers\n`)
  },
  (seconds + 60) * 1000,
)
