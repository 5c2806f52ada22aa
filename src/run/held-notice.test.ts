import { describe, expect, test } from 'bun:test'
import type { AuditEventInput } from '../audit/event.ts'
import type { Screen } from '../terminal/screen.ts'
import { HeldNotice } from './held-notice.ts'

function notice(screen?: Screen) {
  const lines: string[] = []
  const notified: string[] = []
  const recorded: AuditEventInput[] = []
  const clock = { now: 0 }
  const sink = new HeldNotice(
    { record: event => void recorded.push(event) },
    {
      tell: line => lines.push(line),
      env: {},
      sandbox: 'project-0123456789abcdef',
      ...(screen && { screen }),
      now: () => clock.now,
      notify: (title, body) => notified.push(`${title}: ${body}`),
    },
  )
  const hold = (target: { name?: string; address?: string }, at: number) => {
    clock.now = at
    const until = '2026-01-02T03:04:05.000Z'
    sink.record({ kind: 'connection-held', connection: 1, port: 443, until, ...target } as AuditEventInput)
  }
  return { lines, notified, recorded, hold, sink }
}

describe('P11 a person hears that something waits', () => {
  test('by a bell and the desktop while a program has the screen, and in one line at the end', () => {
    let [isFullScreen, rung] = [true, 0]
    const { lines, notified, hold, sink } = notice({
      isFullScreen: () => isFullScreen,
      ring: () => void rung++,
    })
    for (let i = 0; i < 7; i++) hold({ name: `h${i}.example.com` }, i * 1500)
    // Not faster than a person hears; none is forgotten.
    expect([lines, rung, notified.length]).toEqual([[], 4, 4])
    isFullScreen = false
    hold({ name: 'later.example.com' }, 60_000)
    expect(lines).toHaveLength(1)
    const [line = '', ...more] = sink.summary()
    expect(more).toEqual([])
    expect(line).toStartWith('held: h0.example.com:443, h1.example.com:443')
    expect(line).toContain('and 2 more waited for you')
    expect(line).not.toContain('later')
  })

  test('with the command that answers it, on the terminal and on the desktop', () => {
    const { lines, notified, hold } = notice()
    hold({ name: 'cdn.example.com' }, 0)
    hold({ address: '2001:db8::7' }, 5000)
    expect(lines).toEqual([
      'held: cdn.example.com:443 waits for you. In another terminal: pen watch, or pen allow cdn.example.com:443 --session',
      'held: [2001:db8::7]:443 waits for you. In another terminal: pen watch, or pen allow [2001:db8::7]:443 --session',
    ])
    expect(notified[0]).toBe(
      'A sandbox asks to connect: cdn.example.com:443, for project-0123456789abcdef. Answer with pen watch.',
    )
  })

  test('P15 and whose a long name is, also where the desktop has room for little', () => {
    const { notified, hold } = notice()
    hold({ name: `registry.example.com.${'long-'.repeat(40)}x.attacker.test` }, 0)
    expect(notified[0]).toMatch(/^A sandbox asks to connect: ~.{0,62}x\.attacker\.test:443, for project-/)
  })

  test('once a minute for the same, and not faster than they read, however often it is tried', () => {
    const { lines, recorded, hold } = notice()
    for (let i = 0; i < 1000; i++) hold({ name: 'cdn.example.com' }, i)
    for (let i = 0; i < 1000; i++) hold({ name: `n${i}.example.com` }, 1000)
    expect([lines.length, recorded.length]).toEqual([1, 2000])
    hold({ name: 'cdn.example.com' }, 61_000)
    expect(lines).toHaveLength(2)
  })

  test('of nothing else', () => {
    const { lines, sink } = notice()
    sink.record({ kind: 'policy-changed', added: [], removed: [] })
    expect(lines).toEqual([])
  })
})
