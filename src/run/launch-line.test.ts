import { describe, expect, test } from 'bun:test'
import type { Plan } from '../plan/plan.ts'
import type { Merged } from '../policy/merge.ts'
import { launchLines, mustBeSaid } from './launch-line.ts'

const plan = {
  backend: 'process',
  isolation: 'process',
  network: { kind: 'gateway' },
  weaker: [{ name: 'limit-memory', how: 'watched' }],
  gaps: [{ name: 'open-network', why: 'no rule' }],
  notes: [],
} as unknown as Plan
const merged = (trust: 'user' | 'untrusted'): Merged =>
  ({ layers: [{ name: 'x', trust, settings: {} }], expanded: [] }) as unknown as Merged

describe('the launch line', () => {
  test('names backend, isolation and network, and what is held in a weaker way', () => {
    expect(launchLines(plan, merged('user'), [])).toEqual([
      'backend process, isolation process; network by gateway; weaker: limit-memory',
    ])
  })

  test('says when a project’s document had a say, and which gaps were accepted', () => {
    const [line] = launchLines(plan, merged('untrusted'), ['open-network'])
    expect(line).toContain('agent-permissions.json restricted only')
    expect(line).toContain('accepted gaps: open-network')
  })

  test('is followed by what the plan noted', () => {
    const noted = { ...plan, notes: ['npm needs node: list it too'] }
    expect(launchLines(noted, merged('user'), []).slice(1)).toEqual(['note: npm needs node: list it too'])
  })

  test('is printed on the first run, at a terminal, and when a gap or the project changed the policy', () => {
    expect(mustBeSaid(merged('user'), [], false, false)).toBe(false)
    expect(mustBeSaid(merged('user'), [], true, false)).toBe(true)
    expect(mustBeSaid(merged('user'), [], false, true)).toBe(true)
    expect(mustBeSaid(merged('untrusted'), [], false, false)).toBe(true)
    expect(mustBeSaid(merged('user'), ['x'], false, false)).toBe(true)
  })
})
