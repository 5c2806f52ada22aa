import { describe, expect, test } from 'bun:test'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryProject, temporaryProject, withHome } from '../../test/temporary-project.ts'
import { PenError } from '../base/error.ts'
import { explainConnection } from '../policy/explain.ts'
import type { Policy } from '../policy/policy.ts'
import { type Loaded, loadPolicy, ownPolicy } from './load.ts'
import { findProject } from './project.ts'

const load = (
  project: TemporaryProject,
  flags: object = {},
  allowUserExpansion = false,
  offline = false,
): Promise<Loaded> =>
  withHome(project.home, async () =>
    loadPolicy(findProject(project.workspace), { flags, allowUserExpansion, offline }),
  )
const reaches = (policy: Policy, text: string): boolean => {
  const explained = explainConnection(policy, text)
  return explained.ok && explained.value.verdict === 'allowed'
}

describe('the policy of a project', () => {
  test('is the profile coding without any document or flag', async () => {
    using project = temporaryProject()
    const { policy } = await load(project)
    expect([policy.profile, policy.network.allow]).toEqual(['coding', []])
  })

  test('grants what the live config, the lists and the flags grant together', async () => {
    using project = temporaryProject()
    project.writeLive('config.json', '{"network":{"http":["a.test"]}}')
    project.writeLive('http-allowlist.txt', 'b.test:443\n')
    const { policy } = await load(project, { network: { http: ['c.test'] } })
    expect(['a.test', 'b.test', 'c.test', 'd.test'].map(name => reaches(policy, name))).toEqual([
      true,
      true,
      true,
      false,
    ])
  })

  test('is never wider for a project’s document, and says what it took', async () => {
    using project = temporaryProject()
    project.writeLive('config.json', '{"network":{"http":["a.test","b.test"]}}')
    project.write('agent-permissions.json', '{"network":{"http":["b.test","evil.test"]}}')
    const loaded = await load(project)
    expect(['a.test', 'b.test', 'evil.test'].map(name => reaches(loaded.policy, name))).toEqual([
      false,
      true,
      false,
    ])
    expect(reaches(await ownPolicy(loaded), 'a.test')).toBe(true)
  })

  test('is wider for it only when the user says so', async () => {
    using project = temporaryProject()
    project.write('agent-permissions.json', '{"network":{"http":["evil.test"]}}')
    const { policy, merged } = await load(project, {}, true)
    expect(reaches(policy, 'evil.test')).toBe(true)
    expect(merged.expanded).toHaveLength(1)
    const offline = await load(project, {}, true, true)
    expect(reaches(offline.policy, 'evil.test')).toBe(false)
  })

  test('takes nothing from the project’s own .pen/', async () => {
    using project = temporaryProject()
    project.write(
      '.pen/config.json',
      '{"network":{"http":["evil.test"]},"profile":"dev","acceptGaps":["no-seccomp"]}',
    )
    const { policy } = await load(project)
    expect([policy.profile, reaches(policy, 'evil.test'), policy.acceptGaps]).toEqual(['coding', false, []])
  })

  test('is not made at all when one document is bad', async () => {
    using project = temporaryProject()
    project.writeLive('config.json', '{"network":{"http":["a.test"]}}')
    project.write('agent-permissions.json', '{')
    expect(load(project)).rejects.toThrow(PenError)
  })

  test('P16 has no host of a group by a file that the sandbox may write', async () => {
    using project = temporaryProject()
    mkdirSync(join(project.home, '.config/pip'), { recursive: true })
    writeFileSync(join(project.home, '.config/pip/pip.conf'), '[global]\nindex-url = https://mirror.test/\n')
    const group = { network: { groups: ['pypi'] } }
    expect(reaches((await load(project, group)).policy, 'mirror.test')).toBe(true)
    for (const more of [
      { files: { write: ['~/.config/pip'] } },
      { mounts: [{ host: '~/.config/pip', at: '/srv/pip', mode: 'rw' }] },
    ])
      await expect(load(project, { ...group, ...more })).rejects.toThrow('where the sandbox could change it')
    // A volume is the sandbox's, too, wherever pen keeps it.
    const { stateDir } = (await load(project, group)).project
    mkdirSync(join(stateDir, 'volumes/cache'), { recursive: true })
    writeFileSync(join(stateDir, 'volumes/cache/pip.conf'), '[global]\nindex-url = https://evil.test/\n')
    rmSync(join(project.home, '.config/pip/pip.conf'))
    symlinkSync(join(stateDir, 'volumes/cache/pip.conf'), join(project.home, '.config/pip/pip.conf'))
    await expect(load(project, group)).rejects.toThrow('where the sandbox could change it')
  })

  test('has the hosts of a group, and none when offline', async () => {
    using project = temporaryProject()
    project.writeLive('config.json', '{"network":{"groups":["github"]}}')
    expect(reaches((await load(project)).policy, 'github.com')).toBe(true)
    const offline = await load(project, {}, false, true)
    expect([reaches(offline.policy, 'github.com'), offline.policy.network.allow]).toEqual([false, []])
  })
})
