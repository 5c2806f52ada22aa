import { expect, test } from 'bun:test'
import type { Host } from '../policy/host.ts'
import type { Port } from '../policy/port.ts'
import type { AuditEventInput } from './event.ts'
import { RefusalTally } from './refusals.ts'

const denied = (path: string, cure?: string): AuditEventInput => ({
  kind: 'broker-denied',
  request: 1,
  op: 'read',
  path,
  reason: 'not-granted',
  cure,
})

test('what was refused is told once, with how often and the command that would allow it', () => {
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
      cure: 'pen allow example.com:443',
    })
  tally.record(denied('/home/u/a', 'pen grant /home/u/a'))
  expect(tally.lines()).toEqual([
    'refused: example.com:443 (2 times); to allow it: pen allow example.com:443',
    'refused: read /home/u/a; to allow it: pen grant /home/u/a',
  ])
  expect(seen.length).toBe(3)
  // Since a moment: those that came after it.
  expect([tally.all, tally.since(2), tally.since(3)]).toEqual([
    3,
    ['refused: read /home/u/a; to allow it: pen grant /home/u/a'],
    [],
  ])
})

test('a limit that was reached is told to the command that reached it, and again when a later one does', () => {
  const tally = new RefusalTally({ record: () => undefined })
  const line = 'limit: limits.pids (20) was reached'
  tally.note(line)
  expect([tally.all, tally.since(0), tally.since(1), tally.lines()]).toEqual([1, [line], [], []])
  tally.note(line)
  expect([tally.since(1), tally.since(2)]).toEqual([[line], []])
})

test('a path that reads like a sentence or a command is not told at the end, and is recorded', () => {
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

test('what was allowed after it had been refused is not told', () => {
  const tally = new RefusalTally({ record: () => undefined })
  const [port, name] = [443 as Port, 'example.com' as Host]
  const other = 'other.example.com' as Host
  for (const refused of [name, other])
    tally.record({ kind: 'connection-denied', connection: 1, name: refused, port, reason: 'x' })
  tally.record({ kind: 'connection-allowed', connection: 2, name, port, rule: 'example.com:443' })
  expect(tally.lines()).toEqual(['refused: other.example.com:443'])
})
