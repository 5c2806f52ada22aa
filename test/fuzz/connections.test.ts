/**
 * Hostile programs and servers at both ends of one gateway do random forbidden things while the policy changes.
 * Nothing leaks, nothing throws, and every record has its end.
 */
import { expect, test } from 'bun:test'
import type { Client } from '../gateway/client.ts'
import { eventually } from '../gateway/client.ts'
import { clientHello } from '../gateway/hello.ts'
import type { Behaviour } from '../gateway/recorder.ts'
import { policyOf, UP, World } from '../gateway/world.ts'
import { prng } from './prng.ts'

const SESSIONS = 600
const SIDE_BY_SIDE = 24
const BIG = 'z'.repeat(300_000)
const ALLOW = ['allowed.test:443', 'allowed.test:80', 'allowed.test:22']
const POLICIES = [{ allow: ALLOW }, { allow: ALLOW.slice(0, 2) }, { allow: ALLOW, deny: [UP] }, { allow: [] }]

const to = (host: string, more = '', body = ''): string => `HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n${body}`
const SAID = [
  `GET / ${to('allowed.test')}`,
  `HEAD / ${to('allowed.test')}`,
  `POST / ${to('allowed.test', 'Content-Length: 5\r\n', 'hello')}`,
  `POST / ${to('allowed.test', 'Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n0\r\na: b\r\n\r\n')}`,
  `POST / ${to('allowed.test', 'Content-Length: 300000\r\nExpect: 100-continue\r\n')}`,
  `GET / ${to('evil.test')}`,
  `GET /ws ${to('allowed.test', 'Connection: Upgrade\r\nUpgrade: websocket\r\n')}`,
  `GET http://allowed.test/ ${to('allowed.test')}`,
  `GET http://evil.test/ ${to('evil.test')}`,
  `CONNECT allowed.test:443 ${to('x')}`,
  `CONNECT evil.test:443 ${to('x')}`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\r\n',
  ...[{}, { names: ['evil.test'] }, { perRecord: 7 }, { names: [] }].map(o =>
    clientHello(o).toString('latin1'),
  ),
  '\x00\x01binary',
  'SSH-2.0-x\r\n',
  BIG,
]
const ANSWERED = [
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  'HTTP/1.0 200 OK\r\n\r\nall',
  'HTTP/1.1 304 Not Modified\r\n\r\n',
  'garbage\n\n',
  `HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n${BIG}`,
]

const dice = prng(20260101, 1)
const random = (): number => dice.below(1_000_000) / 1_000_000
const chance = (share: number): boolean => random() < share
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
const pause = (most: number): Promise<void> => Bun.sleep(random() * most)

const misbehave: Behaviour = socket => {
  const answer = pick(ANSWERED)
  if (chance(0.1)) return void socket.resetAndDestroy()
  if (chance(0.1)) {
    socket.pause()
    setTimeout(() => socket.resume(), random() * 200)
  }
  if (chance(0.8)) socket.write(answer.slice(0, chance(0.2) ? 9 : undefined), 'latin1')
  if (chance(0.1)) socket.end()
}

async function drive(client: Client): Promise<void> {
  for (let steps = 1 + random() * 5; steps > 0 && !client.closed; steps--) {
    const said = pick(SAID)
    const cut = chance(0.3) ? Math.floor(random() * said.length) : said.length
    client.send(said.slice(0, cut))
    if (chance(0.6)) await pause(30)
    if (cut < said.length && chance(0.8)) client.send(said.slice(cut))
    if (chance(0.1)) client.socket.end()
    if (chance(0.1)) return void client.socket.resetAndDestroy()
    if (chance(0.1)) client.socket.pause()
    if (chance(0.1)) client.socket.resume()
  }
  if (chance(0.4)) client.socket.end()
  else if (chance(0.8)) client.socket.resetAndDestroy()
}

const dial = (world: World): Promise<Client> => {
  if (chance(0.25)) return world.byProxy()
  if (chance(0.8)) return world.byName('allowed.test', pick([80, 443, 22]))
  return chance(0.7) ? world.byName('evil.test', 80) : world.byAddress('198.51.100.66', 80)
}

test('P17 whatever both ends do, nothing reaches the wrong server or stays open, and each record ends', async () => {
  const world = await World.start({
    allow: ALLOW,
    idleMs: 600,
    limits: {
      headMs: 200,
      graceMs: 3,
      silenceMs: 50,
      lingerMs: 60,
      halfClosedMs: 300,
      maxBuffered: 4_000_000,
      denialBurst: 200,
    },
  })
  world.up.behave = misbehave
  let left = SESSIONS
  const programs: Promise<void>[] = Array.from({ length: SIDE_BY_SIDE }, async () => {
    while (left-- > 0) {
      await drive(await dial(world))
      if (!chance(0.03)) continue
      world.policy = policyOf({ ...pick(POLICIES), idleMs: 600 })
      world.gateway.policyChanged()
      setTimeout(() => {
        world.policy = policyOf({ allow: ALLOW, idleMs: 600 })
      }, 10)
    }
  })
  await Promise.all(programs)
  await eventually(() => world.gateway.stats().open === 0, 10_000)
  expect(world.gateway.stats()).toMatchObject({ undecided: 0, dialling: 0, accepted: SESSIONS })
  expect([world.evil.seen, world.strays]).toEqual([[], []])
  await eventually(() => world.up.seen.every(one => one.closed), 10_000)

  const printed = () => {
    const ends = new Map<number, string[]>()
    for (const event of world.audit)
      if ('connection' in event)
        ends.set(event.connection, [...(ends.get(event.connection) ?? []), event.kind.slice(11)])
    return new Set([...ends.values()].map(kinds => kinds.join(' ')))
  }
  // The last close may still be on its way to the gateway.
  await eventually(() => !printed().has('allowed'), 10_000)
  const stories = printed()
  const possible = ['denied', 'allowed closed', 'allowed failed', 'allowed denied', 'allowed closed denied']
  expect([...stories].filter(story => !possible.includes(story))).toEqual([])
  expect(stories.size).toBeGreaterThanOrEqual(4)
  await world.close()
}, 60_000)
