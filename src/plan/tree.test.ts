import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../test/arbitrary/policy.ts'
import { accessOf, factsFor } from '../../test/arbitrary/tree-model.ts'
import { PenError } from '../base/error.ts'
import type { HostPath } from '../policy/files/path.ts'
import type { GitDirectory, HostFacts } from './facts.ts'
import { emptyModule } from './git-steps.ts'
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

  test('with a review layer, the writable workspace is the merged tree, and protected files are the host’s', () => {
    const layer = '/state/review' as HostPath
    const repository = { ...factsFor(policyOf({}), EXISTING).repository, protect: [{ path: `${WS}/a/b` }] }
    const extra = { layer, repository }
    const merged = `from ${layer}/merged`
    expect(at({}, WS, extra)).toEqual([`bind rw ${WS} ${merged}  (granted by profile coding)`])
    expect(at({ files: { write: ['a'] }, profile: 'strict' }, `${WS}/a`, extra)).toEqual([
      expect.stringContaining(`bind rw ${WS}/a ${merged}/a`),
    ])
    expect(at({}, `${WS}/a/b`, extra)).toEqual([`bind ro ${WS}/a/b  (protected)`])
    // The kernel refuses to rename a directory of the project, so none is pinned.
    expect(at({}, `${WS}/a`, { repository })).toHaveLength(1)
    expect(at({}, `${WS}/a`, extra)).toEqual([])
    const { growing } = tree({}, extra)
    expect(growing.filter(path => !path.endsWith('/cache'))).toEqual([
      `${layer}/upper` as HostPath,
      `${layer}/merged` as HostPath,
    ])
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

  test('a pin in a protected directory is read-only, also where only the survey protects it', () => {
    const of = (path: string) => ({ ...factsFor(policyOf({}), EXISTING).repository, protect: [{ path }] })
    const bound = (path: string) =>
      at({ files: { deny: ['a/b/key'] } }, `${WS}/a/b`, { repository: { ...of(path), pins: [`${WS}/a/b`] } })
    expect(bound(`${WS}/a`)).toEqual([`bind ro ${WS}/a/b  (holds a protected or denied place)`])
    expect(bound(`${WS}/other`)).toEqual([`bind rw ${WS}/a/b  (holds a protected or denied place)`])
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

  test('no mount shows under another path what only the survey protects or denies', () => {
    const path = `${WS}/tools/hooks`
    const facts = factsFor(policyOf({}), EXISTING)
    const located = new Map(
      ['tools', 'other'].map(name => [
        `${WS}/${name}`,
        { real: `${WS}/${name}`, kind: 'directory' as const },
      ]),
    )
    const build = (host: string, mode: string, found: object, at = '/m') =>
      tree({ mounts: [{ host, at, mode }] }, { ...facts, located, ...found })
    const denied = { denied: [{ path, kind: 'file', why: 'a denied link leads there' }] }
    for (const key of ['protect', 'watch'] as const) {
      const found = { repository: { ...facts.repository, [key]: [{ path }] } }
      expect(() => build('./tools', 'rw', found)).toThrow(`the protection of ${path}`)
      for (const [host, mode] of [
        ['./tools', 'ro'],
        ['./other', 'rw'],
      ] as const)
        expect(() => build(host, mode, found)).not.toThrow()
    }
    expect(() => build('./tools', 'ro', denied)).toThrow(`the denial of ${path}`)
    expect(() => build('./tools', 'ro', denied, `${WS}/tools`)).not.toThrow()
    expect(() => build('./other', 'rw', denied)).not.toThrow()
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

  describe("the sandbox's own git directory", () => {
    const own = '/h/u/.pen/git/run/dir' as HostPath
    const git = (path: string, more: Partial<GitDirectory> = {}): GitDirectory => ({
      path,
      lentAt: '/run/pen-git/0',
      alternates: [],
      hasLfs: false,
      submodules: [],
      ...more,
    })
    const view = (of: GitDirectory): HostFacts['repository'] => ({
      git: of,
      own,
      emptyModules: [],
      protect: [],
      pins: [],
      watch: [],
      warnings: ['told'],
    })
    const binds = (of: GitDirectory, more: Partial<HostFacts['repository']> = {}): string[] =>
      tree({}, { repository: { ...view(of), ...more } }).steps.flatMap(step =>
        step.op === 'bind' && /\.git|pen-git|lib|^\/cache/.test(step.at)
          ? [`${step.mode} ${step.at} from ${step.from}`]
          : [],
      )

    test("is at the place of the host's one, which the sandbox does not have", () => {
      const { steps, notes } = tree({}, { repository: view(git(`${WS}/.git`)) })
      expect(binds(git(`${WS}/.git`))).toContain(`rw ${WS}/.git from ${own}`)
      expect(notes).toEqual(['told'])
      const fromHost = steps.filter(step => step.op === 'bind' && step.from.startsWith(`${WS}/.git`))
      expect(fromHost.map(step => step.op === 'bind' && `${step.mode} ${step.from}`)).toEqual([
        `ro ${WS}/.git/objects`,
      ])
    })

    test("P3 a denied path in it shows nothing of the host's one; a denied path beside it is pinned", () => {
      const deny = { files: { deny: ['.git/hooks', 'a/b'] } }
      const { steps } = tree(deny, { repository: { ...view(git(`${WS}/.git`)), pins: [`${WS}/.git/hooks`] } })
      const from = steps.flatMap(step => (step.op === 'bind' ? [`${step.mode} ${step.from}`] : []))
      expect(from.filter(bind => bind.includes(`${WS}/`))).toEqual([`rw ${WS}/a`, `ro ${WS}/.git/objects`])
    })

    test('of a linked worktree is at the place of the shared repository, outside the workspace', () => {
      const { steps } = tree({}, { repository: view(git('/h/u/main/.git')) })
      expect(accessOf(steps, '/h/u/main/.git/refs')).toEqual({ read: true, write: true })
      expect(accessOf(steps, '/h/u/main/src')).toEqual({ read: false, write: false })
    })

    test('borrows objects, large files and alternates read-only, also those of submodules', () => {
      const lib = git(`${WS}/.git/modules/lib`, {
        lentAt: '/run/pen-git/1',
        alternates: [{ from: '/data/cache', at: '/cache' }],
      })
      const shown = binds(git(`${WS}/.git`, { hasLfs: true, submodules: [lib] }))
      expect(new Set(shown)).toEqual(
        new Set([
          'ro /cache from /data/cache',
          `ro /run/pen-git/0/lfs from ${WS}/.git/lfs`,
          `ro /run/pen-git/0/objects from ${WS}/.git/objects`,
          `ro /run/pen-git/1/objects from ${WS}/.git/modules/lib/objects`,
          `rw ${WS}/.git from ${own}`,
        ]),
      )
    })

    test('has a private, empty directory for each submodule without a checkout', () => {
      const emptyModules = [`${WS}/libs/a`, `${WS}/libs/b`]
      const shown = binds(git(`${WS}/.git`), { emptyModules, pins: [`${WS}/libs`] })
      expect(shown.filter(bind => bind.includes('libs'))).toEqual([
        `rw ${WS}/libs from ${WS}/libs`,
        ...emptyModules.map(path => `rw ${path} from ${emptyModule(own, path)}`),
      ])
    })

    test('counts as growth, because it is not in the workspace', () => {
      const { growing } = tree({}, { repository: view(git(`${WS}/.git`)) })
      expect(growing.map(String)).toContain(own)
    })
  })

  test('counts the growth of every writable tree once', () => {
    expect(tree({ files: { write: ['a', '/data'] } }).growing.map(String)).toEqual([
      WS,
      '/data',
      '/h/u/.pen/volumes/cache',
    ])
  })
})
