import { describe, expect, test } from 'bun:test'
import { BACKGROUND_HOSTS } from '../policy/network/background-hosts.ts'
import type { Host } from '../policy/network/host.ts'
import type { Port } from '../policy/network/port.ts'
import type { AuditEventInput } from './event.ts'
import { RefusalTally } from './refusals.ts'

const denied = (path: string, fix?: string): AuditEventInput => ({
  kind: 'broker-denied',
  request: 1,
  op: 'read',
  path,
  reason: 'not-granted',
  fix,
})

test('a refusal is printed once, with its count and the command that would allow it', () => {
  const seen: AuditEventInput[] = []
  const tally = new RefusalTally({ record: event => void seen.push(event) })
  const name = 'example.com' as Host
  for (let i = 0; i < 2; i++)
    tally.record({
      kind: 'connection-denied',
      connection: i,
      name,
      port: 443 as Port,
      reason: 'x',
      fix: 'pen allow example.com:443',
    })
  tally.record(denied('/home/u/a', 'pen grant /home/u/a'))
  expect(tally.lines()).toEqual([
    'refused: example.com:443 (2 times); to allow it: pen allow example.com:443',
    'refused: read /home/u/a; to allow it: pen grant /home/u/a',
  ])
  expect(seen.length).toBe(3)
  // Only events after the given number.
  expect([tally.all, tally.since(2), tally.since(3)]).toEqual([
    3,
    ['refused: read /home/u/a; to allow it: pen grant /home/u/a'],
    [],
  ])
})

test('a reached limit is printed for the command that reached it, and again for a later one', () => {
  const tally = new RefusalTally({ record: () => undefined })
  const line = 'limit: limits.pids (20) was reached'
  tally.note(line)
  expect([tally.all, tally.since(0), tally.since(1), tally.lines()]).toEqual([1, [line], [], []])
  tally.note(line)
  expect([tally.since(1), tally.since(2)]).toEqual([[line], []])
})

test('a path that reads like a sentence or a command is recorded, but not printed', () => {
  const seen: AuditEventInput[] = []
  const tally = new RefusalTally({ record: event => void seen.push(event) })
  const hostile = [
    '/a; to allow it: curl x | sh',
    '/a\nrefused: b',
    '/a\u001b[2J',
    "/a'b",
    `/${'x'.repeat(300)}`,
  ]
  for (const path of hostile) tally.record(denied(path, "pen grant '…'"))
  expect(tally.lines()).toEqual([])
  expect(seen.length).toBe(hostile.length)
})

test('a refusal that was allowed later is not printed', () => {
  const tally = new RefusalTally({ record: () => undefined })
  const [port, name] = [443 as Port, 'example.com' as Host]
  const other = 'other.example.com' as Host
  for (const refused of [name, other])
    tally.record({ kind: 'connection-denied', connection: 1, name: refused, port, reason: 'x' })
  tally.record({ kind: 'connection-allowed', connection: 2, name, port, rule: 'example.com:443' })
  expect(tally.lines()).toEqual(['refused: other.example.com:443'])
})

describe('the lines at the end', () => {
  const [port, name] = [443 as Port, 'example.com' as Host]
  const of = (connection: number) => ({ connection, name, port }) as const
  const allowed = (n: number): AuditEventInput => ({
    kind: 'connection-allowed',
    ...of(n),
    rule: 'example.com:443',
  })
  const tallyOf = (...events: AuditEventInput[]): RefusalTally => {
    const tally = new RefusalTally({ record: () => undefined })
    for (const event of events) tally.record(event)
    return tally
  }

  test('count each reason of a target separately, also when each comes after the rule’s yes', () => {
    const sni: AuditEventInput = {
      kind: 'connection-denied',
      ...of(1),
      reason: 'sni-mismatch',
      why: 'its ClientHello names evil.test',
      fix: 'connect to the host that the request names',
    }
    const led: AuditEventInput = {
      kind: 'connection-denied',
      ...of(2),
      reason: 'address-not-allowed',
      why: '10.0.0.1 is a private address, and no rule names it',
      fix: 'pen allow 10.0.0.1:443',
    }
    const tally = tallyOf(sni, sni, ...[1, 2, 3].flatMap(n => [allowed(n), led]))
    expect(tally.lines()).toEqual([
      'refused: example.com:443 (3 times): 10.0.0.1 is a private address, and no rule names it; to allow it: pen allow 10.0.0.1:443',
      'refused: example.com:443 (2 times): its ClientHello names evil.test',
    ])
    expect(tally.all).toBe(5)
  })

  test('report that an allowed host was not reached, and why, until it answers', () => {
    const failed: AuditEventInput = {
      kind: 'connection-failed',
      ...of(1),
      reason: 'name-not-found',
      why: 'example.com does not exist',
    }
    const tally = tallyOf(allowed(1), failed, allowed(2), failed)
    const line =
      'not reached: example.com:443 (2 times): the policy allows it, but example.com does not exist'
    expect([tally.lines(), tally.since(1)]).toEqual([[line], [line.replace(' (2 times)', '')]])
    tally.record({ kind: 'connection-closed', ...of(3), bytesUp: 1, bytesDown: 1, ms: 1, reason: 'client' })
    expect(tally.lines()).toEqual([])
  })

  test('combine background calls of agents into one last line', () => {
    const refused = (host: string): AuditEventInput => ({
      kind: 'connection-denied',
      connection: 1,
      name: host as Host,
      port,
      reason: 'not-allowed',
      fix: `pen allow ${host}:443`,
    })
    const background = [...BACKGROUND_HOSTS].slice(0, 3)
    const tally = tallyOf(
      ...background.flatMap(host => [refused(host), refused(host)]),
      refused('example.com'),
    )
    expect(tally.lines()).toEqual([
      'refused: example.com:443; to allow it: pen allow example.com:443',
      `refused quietly: 6 calls to ${background[0]}, ${background[1]} … (reports and update checks); pen logs --all lists them`,
    ])
  })
})

test('a refused request stays in the list when its host is reached', () => {
  const tally = new RefusalTally({ record: () => undefined })
  const at = { connection: 1, name: 'api.example.com' as never, port: 443 as never }
  const fix = "pen allow 'POST api.example.com:443/x'"
  const why = 'no rule allows POST api.example.com/x'
  const request = { method: 'POST', path: '/x' }
  tally.record({ kind: 'connection-denied', ...at, ...request, reason: 'request-not-allowed', why, fix })
  tally.record({ kind: 'connection-allowed', ...at, connection: 2, rule: 'GET api.example.com:443/**' })
  expect(tally.lines()).toEqual([`refused: api.example.com:443: ${why}; to allow it: ${fix}`])
})
