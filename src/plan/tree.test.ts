import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../test/arbitrary/policy.ts'
import { accessOf, factsFor } from '../../test/arbitrary/tree-model.ts'
import { PenError } from '../base/error.ts'
import type { HostFacts } from './facts.ts'
import { showStep } from './show.ts'
import { buildTree } from './tree.ts'

const WS = '/h/u/ws'
const EXISTING = [WS, `${WS}/a`, `${WS}/a/b`, `${WS}/.env`, `${WS}/.git`, `${WS}/.git/hooks`, '/data']

function tree(value: object, extra: Partial<HostFacts> = {}, existing: readonly string[] = EXISTING) {
  const policy = policyOf(value)
  return buildTree(policy, factsFor(policy, existing, extra), { uid: 1000, gid: 1000 }, false)
}
const at = (value: object, path: string, extra: Partial<HostFacts> = {}) =>
  tree(value, extra)
    .steps.filter(step => step.at === path)
    .map(showStep)

describe('the file tree', () => {
  test('starts empty: nothing of the host is there without a grant', () => {
    const { steps } = tree({})
    for (const path of ['/', '/h', '/h/u', '/h/u/.ssh', '/etc/shadow', '/root', '/data', '/var/run'])
      expect([path, accessOf(steps, path)]).toEqual([path, { read: false, write: false }])
    expect(accessOf(steps, `${WS}/src`)).toEqual({ read: true, write: true })
  })

  test('has the workspace at its own path', () => {
    expect(at({}, WS)).toEqual([`bind rw ${WS}  (granted by profile coding)`])
    expect(at({ profile: 'strict' }, WS)).toEqual([`bind ro ${WS}  (granted by profile strict)`])
  })

  test('has private scratch directories such as /tmp and home, bounded by the limits', () => {
    const { steps } = tree({ limits: { memory: '1GiB' } })
    const scratch = steps.flatMap(step =>
      step.op === 'tmpfs' ? [[step.at as string, step.size as number]] : [],
    )
    expect(scratch.map(([path]) => path)).toEqual(['/run', '/tmp', '/dev/shm', '/home/agent', '/var/tmp'])
    for (const [, size] of scratch) expect(size).toBeLessThanOrEqual(512 * 1024 ** 2)
  })

  test('a place that a profile grants is refused when a link leads away from it', () => {
    const linked = (real: string) => {
      const policy = policyOf({ profile: 'strict' })
      const facts = factsFor(policy, EXISTING)
      const located = new Map([...facts.located, [`${WS}/output`, { real, kind: 'directory' as const }]])
      return () => buildTree(policy, { ...facts, located }, { uid: 1000, gid: 1000 }, false)
    }
    expect(linked('/h/u/.ssh')).toThrow(PenError)
    expect(linked('/h/u/.ssh')).toThrow('a link leads from it to /h/u/.ssh')
    expect(linked(`${WS}/output`)).not.toThrow()
  })

  test('covers what is denied and there, and what is deeper wins over it', () => {
    expect(at({}, `${WS}/.env`)).toEqual([`cover ${WS}/.env  (denied by .env*)`])
    const { steps } = tree({ files: { deny: ['a'], read: ['a/b'] } })
    expect(accessOf(steps, `${WS}/a/x`)).toEqual({ read: false, write: false })
    expect(accessOf(steps, `${WS}/a/b/x`)).toEqual({ read: true, write: false })
  })

  test('a denied directory with a grant below it is open until that is in place, also when it is made for it', () => {
    const words = (value: object) =>
      tree(value)
        .steps.filter(step => step.at.startsWith(`${WS}/`))
        .map(showStep)
        .filter(step => !/\.(env|git)/.test(step))
    expect(words({ files: { deny: ['a'], read: ['a/b'] } })).toEqual([
      `cover ${WS}/a  (denied by a; grants below it are shown)`,
      `bind ro ${WS}/a/b  (granted by live config)`,
      `seal ${WS}/a  (read-only from here)`,
    ])
    expect(words({ files: { deny: ['n/'], write: ['n/m/o'] } })).toEqual([
      `cover ${WS}/n  (denied by n/, live config; grants below it are shown)`,
      `bind rw ${WS}/n/m/o  (granted by live config)`,
      `seal ${WS}/n  (read-only from here)`,
    ])
  })

  test('holds what is protected and there, and pins the directories above it', () => {
    expect(at({}, `${WS}/.git/hooks`)).toEqual([`bind ro ${WS}/.git/hooks  (protected)`])
    expect(at({}, `${WS}/.git`)).toEqual([`bind rw ${WS}/.git  (holds a protected or denied place)`])
  })

  test('a protected place inside a denied one stays under its cover', () => {
    const { steps } = tree({ files: { deny: ['a'], protect: ['a/b'] } })
    expect(accessOf(steps, `${WS}/a/b`)).toEqual({ read: false, write: false })
    expect(accessOf(tree({ files: { protect: ['a/b'] } }).steps, `${WS}/a/b`)).toEqual({
      read: true,
      write: false,
    })
  })

  test('puts parents before children and ends with the seal', () => {
    const { steps } = tree({ files: { read: ['a/b', 'a', '/data'] } })
    const order = steps.map(step => step.at as string).filter(path => path.startsWith(WS))
    expect(order).toEqual(
      [...order].sort((a, b) => a.split('/').length - b.split('/').length || (a < b ? -1 : 1)),
    )
    expect(steps.at(-1)).toEqual({ op: 'seal', at: '/' as never })
  })

  test('makes a writable directory of the workspace that is absent, and notes another grant that is', () => {
    const made = tree({ profile: 'strict' })
    expect(made.makeDirectories.map(String)).toContain(`${WS}/output`)
    const noted = tree({ files: { read: ['/absent'] } })
    expect(noted.notes).toEqual(['/absent is granted by live config but does not exist'])
    expect(accessOf(noted.steps, '/absent')).toEqual({ read: false, write: false })
  })

  test('stops at a mount whose source is not there', () => {
    const mounts = [{ host: '/absent', at: '/m' }]
    expect(() => tree({ mounts })).toThrow(PenError)
    expect(at({ mounts: [{ host: '/data', at: '/m' }] }, '/m')).toHaveLength(1)
  })

  test.each([
    ['the workspace, which has denied places', ['.env*'], { host: '.', at: '/m' }],
    ['a directory with a denied file, also when it is absent', ['a/b'], { host: './a', at: '/m' }],
    ['what a pattern may match', ['*/key'], { host: './a', at: '/m' }],
    ['a denied directory itself', ['/data'], { host: '/data', at: '/m' }],
    ['a denied directory itself, at its own path', ['/data'], { host: '/data', at: '/data' }],
    ['a directory elsewhere with a denied place', ['/data/secret'], { host: '/data', at: '/m' }],
    ['a protected place, to be written', [], { host: './.git', at: '/m', mode: 'rw' }],
  ])('no mount shows under another path %s', (_what, deny, mount) => {
    const located = new Map(
      [WS, `${WS}/a`, `${WS}/.git`, '/data'].map(path => [path, { real: path, kind: 'directory' as const }]),
    )
    expect(() => tree({ files: { deny }, mounts: [mount] }, { located })).toThrow('under another path')
  })

  test.each([
    ['a directory without any', ['b/c'], { host: './a', at: '/m', mode: 'rw' }],
    ['a protected place, to be read', [], { host: './.git', at: '/m' }],
    ['a place inside a denied one, which is more specific', ['/data'], { host: '/data/open', at: '/m' }],
    ['a directory at its own path, where denials hold', ['/data/secret'], { host: '/data', at: '/data' }],
  ])('a mount shows %s', (_what, deny, mount) => {
    const located = new Map(
      [`${WS}/a`, `${WS}/.git`, '/data', '/data/open'].map(path => [
        path,
        { real: path, kind: 'directory' as const },
      ]),
    )
    const denied = [{ path: '/data/secret', kind: 'file' as const, why: 'told' }]
    const { steps } = tree({ files: { deny }, mounts: [mount] }, { located, denied })
    expect(steps.filter(step => step.op === 'bind' && (step.at as string) === mount.at)).toHaveLength(1)
    if (mount.at === '/data') expect(accessOf(steps, '/data/secret').read).toBe(false)
  })

  test('mounts a host path and a volume where the policy says', () => {
    const located = new Map([['/data', { real: '/data', kind: 'directory' as const }]])
    const mounts = [
      { host: '/data', at: '/m' },
      { volume: 'v', at: '/v' },
    ]
    expect(at({ mounts }, '/m', { located })).toEqual(['bind ro /m from /data  (mounted by live config)'])
    expect(at({ mounts }, '/v', { located })).toEqual(['bind rw /v from /h/u/.pen/volumes/v  (volume v)'])
  })

  test('mounts the repository of a linked worktree, with its hooks held', () => {
    const repository = {
      mounts: [{ path: '/h/u/main/.git', mode: 'rw' as const }],
      protect: [{ path: '/h/u/main/.git/hooks' }],
      pins: [],
      watch: [],
      warnings: ['told'],
    }
    const { steps, notes } = tree({}, { repository })
    expect(accessOf(steps, '/h/u/main/.git/objects')).toEqual({ read: true, write: true })
    expect(accessOf(steps, '/h/u/main/.git/hooks/x')).toEqual({ read: true, write: false })
    expect(notes).toEqual(['told'])
  })

  test('counts the growth of every writable tree once', () => {
    expect(tree({ files: { write: ['a', '/data'] } }).growing.map(String)).toEqual([
      WS,
      '/data',
      '/h/u/.pen/volumes/cache',
    ])
  })
})
