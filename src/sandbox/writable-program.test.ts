import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../test/arbitrary/policy.ts'
import { warnOfWritableProgram } from './writable-program.ts'

const WS = '/h/u/ws'
const IN_PROJECT = `${WS}/node_modules/.bin/pen`

describe('a pen that the sandbox may write', () => {
  test.each<[string, object, string]>([
    ['in the project', {}, IN_PROJECT],
    ['in a directory that is granted', { files: { write: ['/h/u/tools'] } }, '/h/u/tools/bin/pen'],
    [
      'in one that is mounted elsewhere',
      { mounts: [{ host: '/h/u/tools', at: '/tools', mode: 'rw' }] },
      '/h/u/tools/pen',
    ],
  ])('is told of: %s', (_, value, program) => {
    const [warning = ''] = warnOfWritableProgram(policyOf(value), program)
    expect(warning).toContain(`(${program}): install pen outside`)
  })

  test.each<[string, object, string]>([
    ['outside of all that is granted', {}, '/usr/local/bin/pen'],
    ['in a project that is only read', { profile: 'strict' }, IN_PROJECT],
    ['where it is protected', { files: { protect: ['node_modules/.bin/pen'] } }, IN_PROJECT],
    [
      'in what is only shown',
      { mounts: [{ host: '/h/u/tools', at: '/tools', mode: 'ro' }] },
      '/h/u/tools/pen',
    ],
  ])('is not: %s', (_, value, program) => {
    expect(warnOfWritableProgram(policyOf(value), program)).toEqual([])
  })
})
