import { describe, expect, test } from 'bun:test'
import type { Step } from '../../plan/plan.ts'
import { holdsPrograms } from './listed.ts'

const bind = (at: string, mode: 'ro' | 'rw', why: string): Step => ({
  op: 'bind',
  from: at as never,
  at: at as never,
  mode,
  why,
})
const STEPS: Step[] = [
  bind('/usr', 'ro', 'system'),
  bind('/etc/alternatives', 'ro', 'system'),
  bind('/opt', 'ro', 'system'),
  { op: 'tmpfs', at: '/usr/bin' as never, size: 1 as never, mode: 0o755 },
  bind('/usr/bin/git', 'ro', 'system'),
  { op: 'seal', at: '/usr/bin' as never },
  { op: 'tmpfs', at: '/tmp' as never, size: 1 as never, mode: 0o1777 },
  bind('/opt/project', 'rw', 'granted by profile coding'),
  bind('/opt/reading', 'ro', 'granted by live config'),
  { op: 'seal', at: '/' as never },
]

describe('a mount', () => {
  test.each(['/usr', '/usr/local', '/opt', '/usr/bin/git'])('at %s holds programs of the system', path => {
    expect(holdsPrograms(STEPS, path)).toBe(true)
  })

  test.each([
    '/tmp',
    '/usr/bin',
    '/opt/project',
    '/opt/project/.git',
    '/opt/reading',
    '/etc',
    '/dev',
    '/home/agent',
  ])('at %s holds none, and becomes noexec', path => expect(holdsPrograms(STEPS, path)).toBe(false))
})
