import { describe, expect, test } from 'bun:test'
import { type ChosenBy, decideTool } from './decide-tool.ts'
import { denyAll, type Policy } from './policy.ts'
import type { SettingKey } from './settings.ts'
import type { Source } from './source.ts'

const PROFILE: Source = { layer: 'profile coding', place: undefined }
const USER: Source = { layer: 'live config', place: undefined }
const PROJECT: Source = { layer: 'agent-permissions.json', place: undefined }

const policy = (tools: Partial<Policy['tools']>, sources: Partial<Record<SettingKey, Source>> = {}) => ({
  tools: { ...denyAll('/p' as Policy['workspace']).tools, allow: 'shown' as const, shell: true, ...tools },
  sources: new Map(
    Object.entries({ 'tools.shell': PROFILE, ...sources }) as [SettingKey, Source][],
  ) as Policy['sources'],
})
const git = { name: 'git', shell: false }
const sh = { name: 'sh', shell: true }
const own = { name: undefined, shell: false }
const verdict = (given: ReturnType<typeof policy>, tool: typeof git | typeof own, by: ChosenBy) => {
  const said = decideTool(given, tool, by)
  return said.ok ? 'yes' : said.reason
}

describe('a program where nothing is shown', () => {
  test('is refused to an agent while the user lists none, and the user’s own command runs', () => {
    expect(verdict(policy({}), git, 'agent')).toBe('not-listed')
    expect(verdict(policy({}), git, 'user')).toBe('yes')
    expect(verdict(policy({}), own, 'user')).toBe('yes')
  })

  test('runs when the user lists it, and then only what is listed', () => {
    const listed = policy({ allow: ['git'] }, { 'tools.allow': USER })
    expect(verdict(listed, git, 'agent')).toBe('yes')
    expect(verdict(listed, { name: 'npm', shell: false }, 'agent')).toBe('not-listed')
    expect(verdict(listed, { name: 'npm', shell: false }, 'user')).toBe('not-listed')
    expect(verdict(listed, own, 'agent')).toBe('not-listed')
    expect(verdict(policy({ allow: [] }, { 'tools.allow': USER }), git, 'user')).toBe('not-listed')
  })

  test('is not granted by a list that only the project wrote, but may be taken away by it', () => {
    const listed = policy({ allow: ['git'] }, { 'tools.allow': PROJECT })
    expect(verdict(listed, git, 'agent')).toBe('not-listed')
    expect(verdict(listed, git, 'user')).toBe('yes')
    expect(verdict(listed, { name: 'npm', shell: false }, 'user')).toBe('not-listed')
  })
})

describe('a shell', () => {
  test('runs only when the user set tools.shell, not by a profile', () => {
    expect(verdict(policy({}), sh, 'user')).toBe('shell-off')
    expect(verdict(policy({ allow: ['sh'] }, { 'tools.allow': USER }), sh, 'agent')).toBe('shell-off')
    expect(verdict(policy({}, { 'tools.shell': USER }), sh, 'user')).toBe('yes')
    expect(verdict(policy({}, { 'tools.shell': PROJECT }), sh, 'user')).toBe('shell-off')
    expect(verdict(policy({ shell: false }, { 'tools.shell': USER }), sh, 'user')).toBe('shell-off')
  })

  test('also needs to be listed when an agent asks', () => {
    expect(verdict(policy({}, { 'tools.shell': USER }), sh, 'agent')).toBe('not-listed')
    const both = policy({ allow: ['sh'] }, { 'tools.shell': USER, 'tools.allow': USER })
    expect(verdict(both, sh, 'agent')).toBe('yes')
  })
})
