import { describe, expect, test } from 'bun:test'
import { ABLE } from '../../test/arbitrary/capabilities.ts'
import { policyOf } from '../../test/arbitrary/policy.ts'
import { type Capabilities, findGaps, findWeaker, openGaps } from './gaps.ts'

const gaps = (value: object, caps: Partial<Capabilities> = {}) =>
  findGaps(policyOf(value), { ...ABLE, ...caps }, { foldsNames: false }).map(gap => gap.name)

describe('a gap', () => {
  test('is found nowhere when the backend can do everything', () => {
    expect(gaps({})).toEqual([])
  })

  test.each([
    ['networkNamespace', 'proxy-only'],
    ['seccomp', 'no-seccomp'],
  ] as const)('is there for every policy without %s', (capability, name) => {
    expect(gaps({}, { [capability]: false })).toEqual([name])
  })

  test('is there for files, tools and processes where no kernel confines them, and for mounts that are asked for', () => {
    const soft = ['files-by-gate', 'tools-by-gate', 'processes-may-escape']
    expect(gaps({}, { kernelFiles: false })).toEqual(soft)
    const mounts = [{ volume: 'own', at: '/opt/own' }]
    expect(gaps({ mounts }, { kernelFiles: false })).toEqual([...soft, 'no-mounts'])
    expect(gaps({ mounts })).toEqual([])
  })

  test('is there when a policy asks for what the backend lacks, and only then', () => {
    expect(gaps({ tools: { exec: 'listed' } }, { listedExec: false })).toEqual(['exec-unlisted'])
    expect(gaps({ tools: { exec: 'listed' } })).toEqual([])
    expect(gaps({}, { listedExec: false })).toEqual([])
    expect(gaps({ ports: [{ guest: 1, host: 1 }] }, { ports: false })).toEqual(['no-ports'])
    expect(gaps({}, { ports: false })).toEqual([])
    const fingerprint = `SHA256:${'a'.repeat(43)}`
    expect(gaps({ ssh: { agent: { keys: [fingerprint] } } }, { sshAgent: false })).toEqual(['no-ssh-agent'])
    expect(gaps({ ssh: { agent: { keys: [fingerprint] } } })).toEqual([])
    expect(gaps({}, { sshAgent: false })).toEqual([])
  })

  test('is a file system that takes names in any case, where something is denied or protected', () => {
    const folded = (value: object) =>
      findGaps(policyOf(value), ABLE, { foldsNames: true }).map(gap => gap.name)
    expect(folded({ files: { deny: ['.env'] } })).toEqual(['names-folded'])
    expect(folded({ files: { protect: ['.git/hooks'] } })).toEqual(['names-folded'])
  })

  test('is the open network of an engine, unless the sandbox is offline', () => {
    expect(gaps({ network: { mode: 'bridge' } })).toEqual(['open-network'])
    expect(gaps({ network: { mode: 'bridge' } }, { bridge: false })).toEqual(['no-bridge'])
    expect(gaps({ network: { mode: 'bridge', offline: true } })).toEqual([])
  })

  test('is no denial at any depth: the whole tree is searched', () => {
    expect(gaps({ files: { deny: ['**/c', 'a/*'] } })).toEqual([])
  })

  test('is a limit that nothing holds; one that pen watches is weaker, not a gap', () => {
    const limits = { ...ABLE.limits, memory: 'none', wall: 'watchdog' } as const
    expect(gaps({}, { limits })).toEqual(['no-limit-memory'])
    expect(findWeaker({ ...ABLE, limits }).map(weaker => weaker.name)).toEqual(['limit-wall'])
    expect(findWeaker(ABLE)).toEqual([])
  })

  test('stays open until the user accepts it by its own name', () => {
    const found = findGaps(
      policyOf({}),
      { ...ABLE, seccomp: false, networkNamespace: false },
      { foldsNames: false },
    )
    const open = (...accepted: string[]) => openGaps(found, accepted).map(gap => gap.name)
    expect(open()).toEqual(['proxy-only', 'no-seccomp'])
    expect(open('no-seccomp')).toEqual(['proxy-only'])
    expect(open('seccomp', '*', 'all')).toHaveLength(2)
    expect(open('no-seccomp', 'proxy-only')).toEqual([])
  })
})
