import { describe, expect, test } from 'bun:test'
import type { PlannedLayer, Step } from '../../plan/plan.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { planMounts, refuseVolumes } from './plan-mounts.ts'

const bind = (at: string, mode: 'ro' | 'rw', from = at) => ({ op: 'bind', from, at, mode, why: '' })
const mounts = (...steps: object[]) => planMounts({ steps: steps as Step[], workspace: '/p' as HostPath })

describe('what the engine mounts and what pen holds', () => {
  test('a protected place, its pins and a denied one in a writable grant are held, in the order of the plan', () => {
    const { binds, holds } = mounts(
      bind('/p', 'rw'),
      { op: 'cover', at: '/p/.env', kind: 'file', why: '' },
      bind('/p/.git', 'rw'),
      bind('/p/.git/hooks', 'ro'),
    )
    expect(binds).toEqual([{ from: '/p', at: '/p', mode: 'rw' }])
    expect(holds).toEqual([
      { how: 'cover', at: '/p/.env', from: '/p/.env' },
      { how: 'pin', at: '/p/.git', from: '/p/.git' },
      { how: 'protect', at: '/p/.git/hooks', from: '/p/.git/hooks' },
    ])
  })

  test('a place with more access than its parent is opened by pen: an engine gets no path in the project', () => {
    const { binds, holds } = mounts(bind('/p', 'ro'), bind('/p/output', 'rw'), bind('/p/sub', 'ro'))
    expect(binds.map(({ at }) => at)).toEqual(['/p'])
    expect(holds.map(({ how, at }) => [how, at])).toEqual([
      ['open', '/p/output'],
      ['protect', '/p/sub'],
    ])
  })

  test('another file than the one at that path is mounted by the engine', () => {
    const { binds, holds } = mounts(bind('/p', 'rw'), bind('/p/cache', 'rw', '/elsewhere'))
    expect(binds.map(({ from }) => from)).toEqual(['/p', '/elsewhere'])
    expect(holds).toEqual([])
  })

  test('a mount at another path is held at its own path', () => {
    const { holds } = mounts(bind('/data', 'rw', '/p'), {
      op: 'cover',
      at: '/data/.env',
      kind: 'file',
      why: '',
    })
    expect(holds).toEqual([{ how: 'cover', at: '/data/.env', from: '/p/.env' }])
  })

  test('a grant below a covered directory is shown by the cover, and its holds come after', () => {
    const { binds, holds } = mounts(
      bind('/p', 'rw'),
      { op: 'cover', at: '/p/a', kind: 'directory', passable: true, why: '' },
      bind('/p/a/b', 'ro'),
      bind('/p/a/v', 'rw', '/volume'),
      { op: 'cover', at: '/p/a/b/.env', kind: 'file', why: '' },
    )
    expect(binds.map(({ at }) => at)).toEqual(['/p', '/p/a/v'])
    expect(holds).toEqual([
      {
        how: 'cover',
        at: '/p/a',
        from: '/p/a',
        shows: [
          { from: '/p/a/b', at: '/p/a/b', mode: 'ro', isMounted: false },
          { from: '/volume', at: '/p/a/v', mode: 'rw', isMounted: true },
        ],
      },
      { how: 'cover', at: '/p/a/b/.env', from: '/p/a/b/.env' },
    ])
  })

  test('parent directories of a mount in the home belong to the user', () => {
    const home = { op: 'tmpfs', at: '/home/agent', size: 1, mode: 0o700 }
    const { userDirectories } = mounts(
      home,
      bind('/home/agent/.a/b/c', 'rw', '/v/1'),
      bind('/home/agent/.a/b/c/d/e', 'rw', '/v/2'),
    )
    expect(userDirectories).toEqual(['/home/agent', '/home/agent/.a/b', '/home/agent/.a'])
  })

  test('with a review layer, pen mounts the merged tree and what is in it, and holds places of that tree', () => {
    const layer: PlannedLayer = { dir: '/l' as HostPath, kind: 'overlay' }
    const steps = [
      bind('/p', 'rw', '/l/merged'),
      bind('/p/.git', 'rw', '/own'),
      bind('/p/.git/x', 'ro', '/lent'),
      bind('/p/.npmrc', 'ro'),
      bind('/p/sub', 'rw', '/l/merged/sub'),
      bind('/other', 'rw', '/l/merged/data'),
      bind('/volume', 'rw'),
      { op: 'cover', at: '/p/.env', kind: 'file', why: '' },
    ]
    const planned = { steps: steps as Step[], workspace: '/p' as HostPath }
    const { binds, layered, holds } = planMounts({ ...planned, layer })
    expect(binds.map(({ at }) => at)).toEqual(['/volume'])
    expect(layered.map(({ at }) => at)).toEqual(['/p', '/p/.git', '/p/.git/x', '/other'])
    expect(holds).toEqual([
      { how: 'protect', at: '/p/.npmrc', from: '/l/merged/.npmrc' },
      { how: 'pin', at: '/p/sub', from: '/l/merged/sub' },
      { how: 'cover', at: '/p/.env', from: '/l/merged/.env' },
    ])
    // A copy is a directory of the host like any other.
    expect(planMounts({ ...planned, layer: { ...layer, kind: 'copy' } }).layered).toEqual([])
  })

  test('a cover of a place that is not shown holds nothing', () => {
    expect(mounts({ op: 'cover', at: '/x', kind: 'file', why: '' }).holds).toEqual([])
  })
})

const binds = [{ from: '/home/u/project', at: '/home/u/project', mode: 'rw' as const }]

test('a volume of an image may not be in a granted tree, however it is spelled', () => {
  for (const path of [
    '/home/u/project',
    '/home/u/project/new',
    '/data/../home/u/project/x',
    'home/u/project/x',
  ])
    expect(() => refuseVolumes([path], binds)).toThrow('inside a directory of the host')
})

test('volumes outside of granted trees are allowed', () => {
  expect(() => refuseVolumes(['/data', '/home/u/projects', '/home'], binds)).not.toThrow()
})
