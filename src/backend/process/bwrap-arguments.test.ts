import { describe, expect, test } from 'bun:test'
import type { Plan, Step } from '../../plan/plan.ts'
import type { GuestPath, HostPath } from '../../policy/files/path.ts'
import { bwrapArguments, type Wiring } from './bwrap-arguments.ts'

const at = (path: string) => path as GuestPath
const bind = (from: string, mode: 'ro' | 'rw', why = 'granted', to = from): Step => ({
  op: 'bind',
  from: from as HostPath,
  at: at(to),
  mode,
  why,
})
const WIRING: Wiring = {
  source: path => `/staged${path}`,
  etc: '/cache/etc',
  emptyFile: '/cache/nothing',
  descriptors: { seccomp: 7, block: 8, hold: 9 },
  hasDoor: false,
  isFirst: false,
  descriptor: () => undefined,
}
const PLAN = {
  argv: ['true'],
  steps: [],
  env: [{ name: 'LANG', value: 'C.UTF-8', secret: false }],
  cwd: '/w',
  user: { uid: 1000, gid: 1001 },
  hostname: 'pen',
} as unknown as Plan
const args = (steps: readonly Step[] = [], wiring: Partial<Wiring> = {}) =>
  bwrapArguments({ ...PLAN, steps }, { ...WIRING, ...wiring })
/** The arguments as one line, so that a test can match several of them. */
const line = (...given: Parameters<typeof args>) => ` ${args(...given).join(' ')} `

test('more words than bubblewrap accepts are refused with the count; many are not', () => {
  const words = (count: number) => () =>
    bwrapArguments({ ...PLAN, argv: Array.from({ length: count }, () => 'x') }, WIRING)
  expect(words(8900)).not.toThrow()
  expect(words(8990)).toThrow('8990 words')
})

describe('every sandbox', () => {
  test('has namespaces, a session and an environment of its own, no capability, and a filter', () => {
    for (const part of [
      '--unshare-user',
      '--unshare-ipc',
      '--unshare-pid',
      '--unshare-net',
      '--unshare-uts',
      '--unshare-cgroup',
      '--die-with-parent',
      '--new-session',
      '--cap-drop ALL',
      '--uid 1000',
      '--gid 1001',
      '--clearenv --setenv LANG C.UTF-8',
      '--seccomp 7',
      '--json-status-fd 4',
      '--chdir /w',
    ])
      expect(line()).toContain(` ${part} `)
    expect(line()).not.toContain('--share')
  })
  test('has its filter and its wait for pen first, so that a truncated list cannot lack them', () => {
    expect(args().slice(0, 6)).toEqual(['--seccomp', '7', '--block-fd', '8', '--sync-fd', '9'])
  })
  test('keeps the network namespace of its start only when that has a door', () => {
    expect(line([], { hasDoor: true })).not.toContain('--unshare-net')
  })
  test('has bubblewrap as its first process, or the exec daemon, which nothing inside can stop', () => {
    expect(line()).not.toContain('--as-pid-1')
    expect(line([], { isFirst: true })).toContain(' --as-pid-1 ')
  })
})

describe('steps', () => {
  test('binds come from their staged path, in their mode', () => {
    expect(line([bind('/a', 'ro'), bind('/b', 'rw', 'granted', '/c')])).toContain(
      ' --ro-bind /staged/a /a --bind /staged/b /c ',
    )
  })
  test('binds of an open descriptor are made from it', () => {
    const descriptor = (path: string) => (path === '/a' ? 12 : undefined)
    expect(line([bind('/a', 'ro'), bind('/b', 'rw')], { descriptor })).toContain(
      ' --ro-bind-fd 12 /a --bind /staged/b /b ',
    )
  })
  test('all of the system’s /etc is one read-only mount; a grant in it is its own mount', () => {
    const steps: Step[] = [
      bind('/etc/ssl', 'ro', 'system'),
      { op: 'file', at: at('/etc/hosts'), text: 'x' },
      { op: 'link', at: at('/etc/mtab'), to: '/proc/mounts' },
      bind('/etc/mine', 'rw'),
    ]
    expect(line(steps)).toContain(' --ro-bind /cache/etc /etc --bind /staged/etc/mine /etc/mine ')
    expect(line(steps).match(/\/cache\/etc/g)).toHaveLength(1)
  })
  test('denied places are covered: a file by one without permissions, a directory by an empty one', () => {
    expect(
      line([
        { op: 'cover', at: at('/w/.env'), kind: 'file', why: '' },
        { op: 'cover', at: at('/w/s'), kind: 'directory', why: '' },
      ]),
    ).toContain(' --ro-bind /cache/nothing /w/.env --perms 0000 --size 4096 --tmpfs /w/s --remount-ro /w/s ')
  })
  test('scratch is bounded', () => {
    expect(line([{ op: 'tmpfs', at: at('/tmp'), size: 65536 as never, mode: 0o1777 }])).toContain(
      ' --perms 1777 --size 65536 --tmpfs /tmp ',
    )
  })
  test('come in the order of the plan', () => {
    const out = args([bind('/w', 'rw'), bind('/w/.git', 'ro'), { op: 'seal', at: at('/') }])
    expect(out.indexOf('/w')).toBeLessThan(out.indexOf('/w/.git'))
    expect(out.lastIndexOf('--remount-ro')).toBeGreaterThan(out.indexOf('/w/.git'))
  })
  test('a value with a NUL cannot become an argument of its own', () => {
    const plan = { ...PLAN, env: [{ name: 'X', value: 'a\0--bind\0/\0/', secret: true }] } as Plan
    expect(() => bwrapArguments(plan, WIRING)).toThrow('NUL')
    expect(() => args([bind('/a\0--bind', 'ro')])).toThrow('NUL')
  })
})
