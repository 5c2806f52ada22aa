import { describe, expect, test } from 'bun:test'
import { groupRules, WORKSPACE, world } from '../../test/arbitrary/layer.ts'
import { newPowers, powersOf } from '../../test/arbitrary/powers.ts'
import { compile } from './compile.ts'
import { decideFile } from './files/decide-file.ts'
import type { HostPath } from './files/path.ts'
import type { Policy } from './policy.ts'
import { profileLayer } from './profile.ts'
import type { ProfileName } from './settings.ts'

const on = (name: ProfileName): Policy => compile(profileLayer(name, world).settings, WORKSPACE, groupRules)
const may = (name: ProfileName, access: 'read' | 'write', path: string): boolean =>
  decideFile(on(name), `${WORKSPACE}${path}` as HostPath, access).ok

describe('the profiles', () => {
  test('strict grants no more than coding, and coding no more than dev', () => {
    const except = (powers: string[]) => powers.filter(power => !power.startsWith('profile'))
    expect(except(newPowers(on('strict'), on('coding')))).toEqual([])
    expect(except(newPowers(on('coding'), on('dev')))).toEqual([])
    expect(newPowers(on('coding'), on('strict'))).toContain(`write ${WORKSPACE}`)
  })

  test('none reaches a host by itself', () => {
    for (const name of ['strict', 'coding', 'dev'] as const)
      expect([...powersOf(on(name))].filter(power => power.startsWith('connect'))).toEqual([])
  })

  test('strict shows the workspace read-only, but for ./output', () => {
    expect([may('strict', 'read', '/src'), may('strict', 'write', '/src')]).toEqual([true, false])
    expect(may('strict', 'write', '/output/x')).toBe(true)
  })

  test('coding and dev write the workspace, but for what the host would run', () => {
    for (const name of ['coding', 'dev'] as const) {
      expect(may(name, 'write', '/src/x.ts')).toBe(true)
      for (const path of [
        '/.git/hooks/pre-commit',
        '/.git/config',
        '/.mcp.json',
        '/.vscode/tasks.json',
        '/.pen/x',
      ])
        expect([name, path, may(name, 'read', path), may(name, 'write', path)]).toEqual([
          name,
          path,
          true,
          false,
        ])
    }
  })

  test('all deny .env files, and none grants a home', () => {
    for (const name of ['strict', 'coding', 'dev'] as const) {
      expect(may(name, 'read', '/.env')).toBe(false)
      expect(may(name, 'read', '/.env.local')).toBe(false)
      expect(may(name, 'read', '/env')).toBe(true)
      for (const path of [
        '/h/u/.ssh/id_ed25519',
        '/h/u/.gnupg',
        '/h/u/.config',
        '/h/u/Library/Keychains',
        '/etc/shadow',
      ])
        expect(decideFile(on(name), path as HostPath, 'read').ok).toBe(false)
    }
  })

  test('limit what a sandbox uses up', () => {
    expect(on('coding').limits).toMatchObject({ cpus: 2, memory: 4 * 1024 ** 3, pids: 4096 } as never)
    expect(on('strict').limits.memory).toBeLessThan(on('coding').limits.memory)
  })
})
