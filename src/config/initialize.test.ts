import { describe, expect, test } from 'bun:test'
import { lstatSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryProject, withHome } from '../../test/temporary-project.ts'
import { decideFile } from '../policy/files/decide-file.ts'
import type { HostPath } from '../policy/files/path.ts'
import { PERMISSIONS, permissionsTemplate, writePermissions } from './initialize.ts'
import { loadPolicy, ownPolicy } from './load.ts'
import { findProject } from './project.ts'

const LIVE = [
  {},
  { profile: 'strict' },
  { profile: 'dev', network: { http: ['a.test'], ask: 'hold' }, files: { read: ['./secrets'] } },
  { files: { deny: [] }, limits: { memory: '1GiB' }, tools: { allow: ['git'] } },
]

describe('the template of agent-permissions.json', () => {
  test.each(LIVE.flatMap(live => [false, true].map(may => [JSON.stringify(live), may] as const)))(
    'is taken as it stands and adds nothing to %s, also where it may add: %p',
    async (live, allowUserExpansion) => {
      using project = temporaryProject()
      project.writeLive('config.json', live)
      project.write(PERMISSIONS, permissionsTemplate())
      const loaded = await withHome(project.home, () =>
        loadPolicy(findProject(project.workspace), { flags: {}, allowUserExpansion, offline: false }),
      )
      expect(loaded.merged.expanded).toEqual([])
      const own = await ownPolicy(loaded)
      const { files, ...rest } = loaded.policy
      expect(rest).toEqual((({ files: _files, ...others }) => others)(own))
      expect([files.read, files.write]).toEqual([own.files.read, own.files.write])
      expect(files.deny).toEqual(expect.arrayContaining([...own.files.deny]))
    },
  )

  test('takes away: what it names cannot be read, and what it does not name can', async () => {
    using project = temporaryProject()
    const judge = async (name: string): Promise<boolean> => {
      const { policy } = await withHome(project.home, () =>
        loadPolicy(findProject(project.workspace), { flags: {}, allowUserExpansion: false, offline: false }),
      )
      return decideFile(policy, `${project.workspace}/${name}` as HostPath, 'read').ok
    }
    expect(await judge('server.pem')).toBe(true)
    project.write(PERMISSIONS, permissionsTemplate())
    expect(await Promise.all(['server.pem', 'secrets/a', 'server.txt'].map(judge))).toEqual([
      false,
      false,
      true,
    ])
  })

  test('is not put over anything that is there, nor over a link', () => {
    using project = temporaryProject()
    const path = join(project.workspace, PERMISSIONS)
    symlinkSync(join(project.home, 'elsewhere'), path)
    expect(writePermissions(project.workspace)).toBe(false)
    expect(lstatSync(path).isSymbolicLink()).toBe(true)
    using other = temporaryProject()
    expect(writePermissions(other.workspace)).toBe(true)
    expect(readFileSync(join(other.workspace, PERMISSIONS), 'utf8')).toBe(permissionsTemplate())
    expect(writePermissions(other.workspace)).toBe(false)
  })
})
