import { describe, expect, test } from 'bun:test'
import { ABLE } from '../../test/arbitrary/capabilities.ts'
import { PATHS } from '../../test/arbitrary/layer.ts'
import { policyOf } from '../../test/arbitrary/policy.ts'
import { factsFor } from '../../test/arbitrary/tree-model.ts'
import type { GuestPath } from '../policy/files/path.ts'
import { buildPlan } from './build.ts'
import type { HostFacts } from './facts.ts'
import type { Capabilities } from './gaps.ts'

const caps: Capabilities = {
  ...ABLE,
  bridge: false,
  limits: { ...ABLE.limits, wall: 'watchdog', disk: 'watchdog', output: 'watchdog' },
}

function plan(
  value: object,
  extra: Partial<HostFacts> = {},
  able: Partial<Capabilities> = {},
  argv: string[] = [],
) {
  const policy = policyOf(value)
  const command = { argv, cwd: '/h/u/ws' as GuestPath }
  return buildPlan(policy, factsFor(policy, PATHS, extra), { ...caps, ...able }, command)
}

describe('a plan', () => {
  test('tells of a variable that is passed on and not set, with and without mounts', () => {
    for (const kernelFiles of [true, false]) {
      const { notes } = plan({ env: { LACK: { from: 'host' } } }, {}, { kernelFiles })
      expect(notes.join('\n')).toContain('LACK is passed on by live config, and is not set here')
    }
  })

  test('is the same for the same input', () => {
    expect(plan({})).toEqual(plan({}))
  })

  test('runs a shell when no command is given', () => {
    expect(plan({}).argv).toEqual(['/bin/sh'])
    expect(plan({}, {}, {}, ['npm', 'test']).argv).toEqual(['npm', 'test'])
  })

  test('has no way out but the gateway, and none at all where the mode says so', () => {
    expect(plan({ network: { http: ['a.test'] } }).network).toEqual({ kind: 'gateway' })
    expect(plan({ profile: 'strict', network: { http: ['a.test'] } }).network.kind).toBe('none')
    expect(plan({}).network.kind).not.toBe('bridge')
  })

  test('is offline when the policy is, whatever it grants', () => {
    const network = { http: ['a.test'], mode: 'bridge', offline: true }
    expect(plan({ network }, {}, { bridge: true }).network).toEqual({ kind: 'none', why: 'offline' })
    expect(plan({ network: { ...network, offline: false } }, {}, { bridge: true }).network).toEqual({
      kind: 'bridge',
    })
  })

  test('never opens the network of an engine that has none', () => {
    expect(plan({ network: { http: ['a.test'], mode: 'bridge' } }).network.kind).toBe('gateway')
    expect(plan({ network: { http: ['a.test'] } }, {}, { gateway: false }).network.kind).toBe('none')
  })

  test('gives root away: the user inside is ordinary', () => {
    const root = { identity: { uid: 0, gid: 0 } }
    const stranger = plan({}, { ...root, unprivilegedUser: { uid: 65_000, gid: 65_000, owner: false } })
    expect([stranger.user.uid, stranger.runAs]).toEqual([1000, { uid: 65_000, gid: 65_000 }])
    const owner = plan({}, { ...root, unprivilegedUser: { uid: 1234, gid: 99, owner: true } })
    expect([owner.user, owner.runAs]).toEqual([
      { uid: 1234, gid: 99 },
      { uid: 1234, gid: 99 },
    ])
    const contained = plan({}, { ...root, unprivilegedUser: undefined })
    expect([contained.user.uid, contained.runAs]).toEqual([1000, 'self'])
    expect(plan({}).runAs).toBe('self')
  })

  test('takes the user that the policy names', () => {
    expect(plan({ user: '1001:1002' }).user).toEqual({ uid: 1001, gid: 1002 })
    expect(plan({}, { identity: { uid: 501, gid: 20 } }).user).toEqual({ uid: 501, gid: 20 })
  })

  test('carries gaps, and what is weaker', () => {
    const found = plan({ network: { mode: 'bridge' } })
    expect(found.gaps.map(gap => gap.name)).toEqual(['no-bridge'])
    expect(found.weaker.map(weaker => weaker.name)).toEqual(['limit-wall', 'limit-disk', 'limit-output'])
  })

  test('knows whether only listed programs run', () => {
    expect(plan({ tools: { exec: 'listed' } }).listedExec).toBe(true)
    expect(plan({}).listedExec).toBe(false)
  })
})
