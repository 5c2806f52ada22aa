import { describe, expect, test } from 'bun:test'
import { GROUPS, isGroupName } from '../policy/network/groups.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { type GroupContext, resolveGroup } from './groups.ts'

/** A machine on which no package manager is installed or configured. */
const nothing: GroupContext = {
  home: '/nonexistent',
  cacheDir: '/nonexistent/cache',
  writable: [],
  etc: '/nonexistent/etc',
  find: () => undefined,
}

describe('groups as data', () => {
  test('every group has a version and a reason, and every host a rule that parses and a reason', async () => {
    for (const [name, group] of Object.entries(GROUPS)) {
      expect(group.version).toBeGreaterThan(0)
      expect(group.reason).not.toBe('')
      if (group.follows !== undefined || !isGroupName(name)) continue
      const { rules, mirrors } = await resolveGroup(name, nothing)
      expect(rules.map(({ rule }) => printRule(rule))).toEqual((group.hosts ?? []).map(({ rule }) => rule))
      expect(rules.every(({ source }) => source.note !== undefined && source.note !== '')).toBe(true)
      expect(mirrors).toEqual([])
    }
  })

  test('a group for a package manager names no host', () => {
    for (const name of ['npm', 'pypi', 'crates', 'go', 'debian', 'ubuntu'] as const)
      expect(JSON.stringify(GROUPS[name])).not.toMatch(/[a-z]\.(?:org|com|io|net)\b/)
  })

  test('a name that objects inherit is no group', async () => {
    expect(await resolveGroup('constructor', nothing).catch((error: unknown) => error)).toMatchObject({
      code: 'GROUP',
      hint: expect.stringContaining('npm'),
    })
    for (const name of ['constructor', '__proto__', 'toString', '']) expect(isGroupName(name)).toBe(false)
    expect(isGroupName('npm')).toBe(true)
  })
})
