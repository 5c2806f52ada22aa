import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../test/arbitrary/policy.ts'
import { decideFile } from '../policy/files/decide-file.ts'
import type { HostPath } from '../policy/files/path.ts'
import { protectPen } from './protect-pen.ts'

const WS = '/h/u/ws'
const places = (root: string) => ({ all: [root], run: [`${root}/dist`, `${root}/package.json`] })
const alone = (file: string) => ({ all: [file], run: [file] })

describe('pen itself', () => {
  test.each<[string, object, ReturnType<typeof places>, string]>([
    ['in the project', {}, places(`${WS}/node_modules/pen`), `${WS}/node_modules/pen/dist/pen`],
    ['a binary alone in the project', {}, alone(`${WS}/bin/pen`), `${WS}/bin/pen`],
    [
      'in a directory that is granted',
      { files: { write: ['/h/u/tools'] } },
      places('/h/u/tools/pen'),
      '/h/u/tools/pen/package.json',
    ],
  ])('is not written: %s', (_, value, where, file) => {
    const policy = protectPen(policyOf(value), where)
    expect(decideFile(policy, file as HostPath, 'write')).toMatchObject({ ok: false, reason: 'protected' })
    expect(decideFile(policy, file as HostPath, 'read').ok).toBe(true)
    const [held = ''] = where.all
    expect(decideFile(policy, `${held}-beside` as HostPath, 'write').ok).toBe(true)
  })

  test.each<[string, object, ReturnType<typeof places>]>([
    ['the project is pen’s own clone', {}, places(WS)],
    ['a grant is for a part of it', { files: { write: ['/h/u/pen/dist/x'] } }, places('/h/u/pen')],
    [
      'it is mounted',
      { mounts: [{ host: '/h/u/tools', at: '/tools', mode: 'rw' }] },
      alone('/h/u/tools/pen'),
    ],
    [
      'it is mounted in place',
      { mounts: [{ host: '/h/u/t', at: '/h/u/t', mode: 'rw' }] },
      alone('/h/u/t/pen'),
    ],
  ])('is refused where it cannot be held: %s', (_, value, where) => {
    expect(() => protectPen(policyOf(value), where)).toThrow('pen itself is installed there')
  })

  test.each<[string, object, ReturnType<typeof places>]>([
    ['outside of all that is granted', {}, alone('/usr/local/bin/pen')],
    ['in what is only shown', { mounts: [{ host: '/h/u/t', at: '/t', mode: 'ro' }] }, alone('/h/u/t/pen')],
    ['around the project, in parts that do not run', {}, places('/h/u')],
  ])('changes nothing: %s', (_, value, where) => {
    const policy = policyOf(value)
    expect(protectPen(policy, where)).toBe(policy)
  })
})
