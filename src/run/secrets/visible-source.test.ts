import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Step } from '../../plan/plan.ts'
import type { GuestPath, HostPath } from '../../policy/files/path.ts'
import { denyAll, type Policy } from '../../policy/policy.ts'
import { isReplaceable, refuseReplaceableTrust, whyVisible } from './visible-source.ts'

let root = ''
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-visible-')))
  for (const directory of ['project/hidden', 'own/deep', 'shown'])
    mkdirSync(join(root, directory), { recursive: true })
  for (const file of ['project/token', 'project/hidden/token', 'own/token', 'own/deep/token', 'shown/token'])
    writeFileSync(join(root, file), 'x')
  symlinkSync(join(root, 'project'), join(root, 'to-project'))
  symlinkSync(join(root, 'own'), join(root, 'project/to-own'))
  symlinkSync(join(root, 'project/to-own'), join(root, 'over-project'))
  symlinkSync(join(root, 'own'), join(root, 'to-own'))
  writeFileSync(join(root, 'own/linked'), 'x')
  linkSync(join(root, 'own/linked'), join(root, 'project/linked'))
})
afterAll(() => rmSync(root, { recursive: true }))

const bind = (from: string, at: string): Step => ({
  op: 'bind',
  from: join(root, from) as HostPath,
  at: at as GuestPath,
  mode: 'ro',
  why: '',
})

function why(path: string, ...steps: readonly Step[]): string | undefined {
  const workspace = join(root, 'project') as HostPath
  const none = denyAll(workspace)
  const grant = { rule: { path: workspace, rank: 1 }, source: { layer: 'test', place: undefined } }
  const policy: Policy = { ...none, files: { ...none.files, read: [grant] } }
  return whyVisible(join(root, path), policy, { steps })
}

describe('a file with a secret', () => {
  test('outside everything that is granted is a source, also over a link of the user', () => {
    expect(why('own/token', bind('project', '/project'), bind('shown', '/shown'))).toBeUndefined()
    expect(why('to-own/token', bind('project', '/project'))).toBeUndefined()
    expect(why('absent/token')).toBeUndefined()
  })

  test('in a granted path is none, also over a link that leads there', () => {
    expect(why('project/token')).toContain('can read')
    expect(why('to-project/token')).toContain('can read')
  })

  test('is none when a link that the sandbox can replace leads to it', () => {
    expect(why('over-project/token')).toContain('over a link')
    expect(why('project/to-own/token')).toContain('over a link')
  })

  test('is none when a mount of the plan shows it under any path, and a cover hides it again', () => {
    const cover: Step = { op: 'cover', at: '/x/deep' as GuestPath, kind: 'directory', why: '' }
    expect(why('own/deep/token', bind('own', '/x'))).toContain('can read')
    expect(why('own/deep/token', bind('to-own', '/x'))).toContain('can read')
    expect(why('own/deep/token', bind('own/deep/token', '/run/token'))).toContain('can read')
    expect(why('own/deep/token', bind('own', '/x'), cover)).toBeUndefined()
    expect(why('own/token', bind('own', '/x'), cover)).toContain('can read')
  })

  test('with a hard link elsewhere is none', () => {
    expect(why('own/linked')).toContain('hard link')
  })
})

test('a program, or a file of authorities, is replaceable if the sandbox can write it, or a link on the way to it', () => {
  const workspace = join(root, 'project') as HostPath
  const none = denyAll(workspace)
  const grant = { rule: { path: workspace, rank: 1 }, source: { layer: 'test', place: undefined } }
  const policy: Policy = { ...none, files: { ...none.files, read: [grant], write: [grant] } }
  const is = (path: string): boolean => isReplaceable(join(root, path), policy)
  expect(['project/token', 'to-project/token', 'over-project/token', 'project/to-own/token'].map(is)).toEqual(
    Array<boolean>(4).fill(true),
  )
  expect(['own/token', 'to-own/token', 'shown/none'].map(is)).toEqual([false, false, false])
  const trust = (path: string) => () => refuseReplaceableTrust(path, policy)
  expect(trust(join(root, 'project/token'))).toThrow(
    'NODE_EXTRA_CA_CERTS names a file that the sandbox can write',
  )
  expect(trust(join(root, 'own/token'))).not.toThrow()
  expect(trust('')).not.toThrow()
})
