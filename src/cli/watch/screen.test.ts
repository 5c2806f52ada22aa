import { describe, expect, test } from 'bun:test'
import type { AuditRecord } from '../../audit/read.ts'
import { plain } from '../render/colour.ts'
import { screenLines, type View } from './screen.ts'
import { WatchState } from './state.ts'

const NOW = Date.parse('2026-01-02T03:04:05.000Z')
const RUN = '20260102-030405-1a2b3c'
let seq = 0
const record = (kind: string, verdict: AuditRecord['verdict'], more: object = {}): AuditRecord => ({
  v: 1,
  seq: ++seq,
  time: '2026-01-02T03:04:05.000Z',
  run: RUN,
  kind,
  verdict,
  ...more,
})
const held = (connection: number, name: string, more: object = {}): AuditRecord =>
  record('connection-held', 'hold', {
    connection,
    name,
    port: 443,
    until: new Date(NOW + 60_000).toISOString(),
    ...more,
  })
const targets = (state: WatchState, now = NOW) =>
  state.held(now).map(({ target, count }) => `${target} x${count}`)

describe('a waiting connection', () => {
  test('is counted by target, and disappears after any answer', () => {
    const state = new WatchState()
    for (const [i, name] of ['a.test', 'b.test', 'a.test', 'c.test'].entries()) state.add(held(i, name))
    expect(targets(state)).toEqual(['a.test:443 x2', 'b.test:443 x1', 'c.test:443 x1'])
    state.add(record('connection-allowed', 'allow', { connection: 0, name: 'a.test', port: 443 }))
    state.add(record('connection-denied', 'deny', { connection: 1, name: 'b.test', port: 443 }))
    expect(targets(state)).toEqual(['a.test:443 x1', 'c.test:443 x1'])
    state.add(record('run-end', 'note'))
    expect(targets(state)).toEqual([])
  })

  test('of a request has method and path, and disappears when that request is decided', () => {
    const state = new WatchState()
    state.add(held(1, 'a.test', { method: 'POST', path: '/x' }))
    state.add(held(1, 'a.test', { method: 'POST', path: '/y' }))
    state.add(held(1, 'a.test', { method: 'GET', path: "/';id" }))
    expect(targets(state)).toEqual(['POST a.test:443/x x1', 'POST a.test:443/y x1'])
    const about = { connection: 1, name: 'a.test', port: 443 }
    state.add(record('request-allowed', 'allow', { ...about, method: 'POST', path: '/x' }))
    expect(targets(state)).toEqual(['POST a.test:443/y x1'])
    state.add(record('connection-closed', 'note', about))
    expect(targets(state)).toEqual([])
  })

  test('expires after its deadline, separately for each run', () => {
    const state = new WatchState()
    state.add(held(1, 'a.test'))
    state.add(held(1, 'a.test', { run: '20260102-030405-ffffff' }))
    expect(state.held(NOW)).toHaveLength(2)
    expect(state.held(NOW + 120_000)).toEqual([])
  })

  test('P15 is not offered if its name cannot be a rule', () => {
    const state = new WatchState()
    for (const name of ['a b', 'x\x1b[2J', '--session', 'ünï.test', '', 'a.test\n', '$(id)'])
      state.add(held(seq, name === '--session' ? `${name};id` : name))
    expect(state.held(NOW)).toEqual([])
  })
})

describe('the screen', () => {
  const view = (state: WatchState, more: Partial<View> = {}): View => ({
    state,
    columns: 80,
    rows: 24,
    now: NOW,
    project: 'project-0123456789abcdef',
    selected: undefined,
    isArmed: true,
    message: '',
    paint: plain,
    ...more,
  })
  const busy = (): WatchState => {
    const state = new WatchState()
    for (let i = 0; i < 40; i++) state.add(held(i, `host-${i}.test`))
    for (let i = 0; i < 700; i++)
      state.add(
        record('connection-denied', 'deny', {
          connection: 100 + i,
          name: `refused-${i}.${'very-long-'.repeat(20)}test`,
          port: 443,
          reason: 'not-allowed',
          raw: '\x1b]0;owned\x07\u202e宽',
          fix: 'pen allow x',
        }),
      )
    return state
  }

  test.each([30, 80, 200])('P15 shows whose a long name is, in %i columns', columns => {
    const state = new WatchState()
    state.add(held(1, `registry.example.com.${'long-'.repeat(40)}x.attacker.test`))
    state.add(held(2, 'cdn.example.com'))
    const [long = '', short = ''] = screenLines(view(state, { columns })).slice(3)
    expect(long).toMatch(/^ {2}~[^ ]*attacker\.test:443 +60 s/)
    expect(short).toMatch(/^ {2}cdn\.example\.com:443 +60 s/)
  })

  test.each([
    [80, 24],
    [200, 60],
    [40, 10],
    [20, 4],
    [1, 1],
  ])('P15 fits %i by %i, and holds nothing but plain characters', (columns, rows) => {
    const lines = screenLines(view(busy(), { columns, rows, selected: `${RUN} host-39.test:443` }))
    expect(lines).toHaveLength(rows)
    for (const line of lines) {
      expect(line.length).toBeLessThanOrEqual(columns)
      expect(line).toMatch(/^[ -~]*$/)
    }
  })

  test('always shows the selected one, with the remaining time', () => {
    const lines = screenLines(view(busy(), { selected: `${RUN} host-39.test:443`, now: NOW + 13_000 }))
    expect(lines.find(line => line.startsWith('>'))).toMatch(/^> host-39\.test:443 +47 s {2}run 2026/)
    expect(lines.at(-1)).toContain('o once  s session  a always  d deny once  n never')
  })

  test('offers the servers inside where there is room, and keeps the keys', () => {
    const servers = 'port 3000, 5173 (pen open 3000)'
    const screen = (rows: number) => screenLines(view(busy(), { servers, rows }))
    expect(screen(24)).toContain(`servers inside: ${servers}`)
    expect(screen(8).join()).not.toContain('servers inside')
    for (const rows of [8, 12, 24]) expect(screen(rows).at(-1)).toContain('q quit')
  })

  test('shows that nothing waits, and the totals', () => {
    const state = new WatchState()
    state.add(record('connection-closed', 'note', { connection: 1, bytesUp: 1536, bytesDown: 3 * 1024 ** 2 }))
    state.add(record('limit-hit', 'error', { limit: 'memory', value: '5 of 4' }))
    const text = screenLines(view(state)).join('\n')
    expect(text).toContain('nothing waits for approval')
    expect(text).toContain('0 allowed  0 refused  0 failed  1 limits  1.5 KiB up  3 MiB down')
    expect(text).toContain('limit reached 5 of 4')
  })

  const refused = (name: string, more: object = {}): AuditRecord =>
    record('connection-denied', 'deny', {
      connection: ++seq,
      name,
      port: 443,
      reason: 'not-allowed',
      why: `no rule allows ${name}`,
      fix: `pen allow ${name}:443`,
      ...more,
    })

  test('offers what was refused, the newest first, until it is allowed or the run ends', () => {
    const state = new WatchState()
    for (const name of ['a.test', 'b_c.test', 'a.test']) state.add(refused(name))
    expect(state.refused().map(({ target, count }) => `${target} x${count}`)).toEqual([
      'a.test:443 x2',
      'b_c.test:443 x1',
    ])
    const lines = screenLines(view(state, { selected: state.refused()[0]?.key }))
    expect(lines).toContain('> a.test:443 x2')
    expect(lines.at(-1)).toStartWith('o once  s session  a always  n never')
    expect(lines.join('\n')).toContain('no rule allows it')
    state.add(record('connection-allowed', 'allow', { connection: 1, name: 'a.test', port: 443 }))
    expect(state.refused()).toHaveLength(1)
    state.add(record('run-end', 'note'))
    expect(state.refused()).toEqual([])
  })

  test('P8 offers no service of this machine, its network or its cloud, and no background call', () => {
    const state = new WatchState()
    state.add(refused('nas.local', { reason: 'local-name' }))
    state.add(refused('host.pen.internal'))
    state.add(refused('play.googleapis.com'))
    state.add(
      refused('x.test', { reason: 'sni-mismatch', fix: 'connect to the host that the request names' }),
    )
    for (const address of ['10.0.0.5', '169.254.169.254'])
      state.add(refused('x', { name: undefined, address, fix: `pen allow ${address}:443` }))
    expect(state.refused()).toEqual([])
    expect([state.totals.refused, state.totals.quiet]).toEqual([6, 1])
    expect(screenLines(view(state)).join('\n')).not.toContain('play.googleapis.com')
  })
})
