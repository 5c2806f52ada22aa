import { describe, expect, test } from 'bun:test'
import { groupRules, layerOf, WORKSPACE, world } from '../../../test/arbitrary/layer.ts'
import { compile } from '../compile.ts'
import { grow, narrow } from '../fields.ts'
import { profileLayer } from '../profile.ts'
import { decideFile, type FileVerdict } from './decide-file.ts'
import type { HostPath } from './path.ts'

type Access = 'read' | 'write'

function decide(user: object, path: string, access: Access, agent?: object): FileVerdict {
  const granted = grow(profileLayer('coding', world).settings, layerOf(user, 'user', 'live config').settings)
  const settings = agent === undefined ? granted : narrow(granted, layerOf(agent, 'untrusted').settings)
  const full = path.startsWith('/') ? path : path === '.' ? WORKSPACE : `${WORKSPACE}/${path}`
  return decideFile(compile(settings, WORKSPACE, groupRules), full as HostPath, access)
}
const word = (verdict: FileVerdict) => (verdict.ok ? 'ok' : verdict.reason)

describe('a file', () => {
  test('without a grant is refused, with the command that grants it', () => {
    const verdict = decide({}, '/data/x', 'write')
    expect(verdict).toMatchObject({ ok: false, reason: 'not-granted' })
    expect(verdict.ok ? '' : verdict.fix).toContain('--write /data/x')
  })

  test('beside a granted directory with the same beginning is refused', () => {
    expect(word(decide({ files: { read: ['/data'] } }, '/database/x', 'read'))).toBe('not-granted')
    expect(word(decide({ files: { read: ['/data'] } }, '/data/x', 'read'))).toBe('ok')
    expect(word(decide({}, '/h/u/ws2/x', 'read'))).toBe('not-granted')
  })

  test('granted for reading is not written', () => {
    expect(word(decide({ files: { read: ['/data'] } }, '/data/x', 'write'))).toBe('read-only')
  })

  test('a verdict names the rule and the layer', () => {
    expect(decide({ files: { read: ['/data'] } }, '/data/x', 'read')).toMatchObject({
      ok: true,
      rule: '/data',
      source: { layer: 'live config' },
    })
  })
})

describe('the most specific rule wins, whatever the order', () => {
  test.each([
    [{ deny: ['a'] }, 'a/b', 'read', 'denied-by-rule'],
    [{ deny: ['a'], read: ['a/b'] }, 'a/b/c', 'read', 'ok'],
    [{ read: ['a/b'], deny: ['a'] }, 'a/z', 'read', 'denied-by-rule'],
    [{ deny: ['a/b'], read: ['a'] }, 'a/b/c', 'read', 'denied-by-rule'],
    [{ deny: ['a'], read: ['a'] }, 'a', 'read', 'denied-by-rule'],
    [{ read: ['a'] }, 'a/x', 'write', 'read-only'],
    [{ read: ['a'], write: ['a/b'] }, 'a/b/x', 'write', 'ok'],
    [{ write: ['.git/hooks'] }, '.git/hooks/x', 'write', 'protected'],
    [{ write: ['.git/hooks/x'] }, '.git/hooks/x', 'write', 'ok'],
    [{ deny: ['**/c'], read: ['a/b/c'] }, 'a/b/c', 'read', 'denied-by-rule'],
    [{ deny: ['/data/x'], read: ['/data'] }, '/data/x/y', 'read', 'denied-by-rule'],
    [{ deny: ['/data/x'], read: ['/data'] }, '/data/z', 'read', 'ok'],
  ] as const)('%j: %s %s is %s', (files, path, access, expected) => {
    expect(word(decide({ files }, path, access))).toBe(expected)
  })
})

describe('a protected place', () => {
  test('is read and never written, and so is what is below it', () => {
    for (const path of ['.git/hooks', '.git/hooks/pre-commit', '.git/config']) {
      expect(word(decide({}, path, 'read'))).toBe('ok')
      expect(word(decide({}, path, 'write'))).toBe('protected')
    }
    expect(word(decide({}, '.git/index', 'write'))).toBe('ok')
  })
})

describe('an untrusted layer that narrows to a deeper path', () => {
  test('does not override a denial', () => {
    const user = { files: { deny: ['a'] } }
    expect(word(decide(user, 'a/b', 'read', { files: { read: ['a/b'] } }))).toBe('denied-by-rule')
    expect(word(decide(user, 'ab', 'read', { files: { read: ['ab'] } }))).toBe('ok')
  })

  test('does not override a protected place', () => {
    const agent = { files: { write: ['.git/hooks/x'] } }
    expect(word(decide({}, '.git/hooks/x', 'write', agent))).toBe('protected')
  })

  test('does not make a read-only part writable', () => {
    const user = { files: { read: ['a'] } }
    expect(word(decide(user, 'a/b', 'write', { files: { write: ['a/b'] } }))).toBe('read-only')
  })
})
