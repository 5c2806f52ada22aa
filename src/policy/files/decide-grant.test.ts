import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { denyAll } from '../policy.ts'
import {
  checkGrantable,
  decideGrant,
  type FileGrant,
  type GrantedPolicy,
  grantCommand,
} from './decide-grant.ts'
import { parseGlob } from './glob.ts'
import type { HostPath, PathWorld } from './path.ts'

const host = (path: string) => path as HostPath
const source = { layer: 'live config', place: undefined }
const glob = parseGlob('.env*')
if (!glob.ok) throw new Error('a glob')

const policy: GrantedPolicy = {
  workspace: host('/home/u/project'),
  files: {
    ...denyAll(host('/home/u/project')).files,
    deny: [
      { rule: { kind: 'path', path: host('/home/u/notes/private') }, source },
      { rule: { kind: 'glob', glob: glob.value }, source },
    ],
  },
}

const world: PathWorld = {
  workspace: policy.workspace,
  home: host('/home/u'),
  state: host('/home/u/.pen'),
  locate: path => ({ real: path, kind: 'file' }),
}

const grant = (path: string, more: Partial<FileGrant> = {}): FileGrant => ({
  path: host(path),
  kind: 'directory',
  write: false,
  execute: false,
  until: undefined,
  root: { dev: 1n, ino: 2n },
  ...more,
})

const verdict = (
  grants: readonly FileGrant[],
  path: string,
  access: 'read' | 'write' = 'read',
  now = 1000,
) => {
  const said = decideGrant(policy, grants, { path, access, now })
  return said.ok ? `granted by ${said.grant.path}` : said.reason
}

describe('a verdict', () => {
  test('absence denies, and a grant covers what is in its directory by whole names', () => {
    expect(verdict([], '/home/u/notes/a')).toBe('not-granted')
    const grants = [grant('/home/u/notes')]
    expect(verdict(grants, '/home/u/notes/a/b')).toBe('granted by /home/u/notes')
    expect(verdict(grants, '/home/u/notes')).toBe('granted by /home/u/notes')
    expect(verdict(grants, '/home/u/notes2')).toBe('not-granted')
    expect(verdict(grants, '/home/u')).toBe('not-granted')
  })

  test('a granted file is that file alone', () => {
    const grants = [grant('/home/u/a', { kind: 'file' })]
    expect(verdict(grants, '/home/u/a')).toBe('granted by /home/u/a')
    expect(verdict(grants, '/home/u/a/b')).toBe('not-granted')
    expect(verdict(grants, '/home/u')).toBe('not-granted')
  })

  test('reading is not writing, and the more specific grant decides where both suffice', () => {
    const grants = [grant('/home/u/notes', { write: true }), grant('/home/u/notes/a')]
    expect(verdict([grant('/home/u/notes')], '/home/u/notes/a', 'write')).toBe('read-only')
    expect(verdict(grants, '/home/u/notes/a/b', 'write')).toBe('granted by /home/u/notes')
    expect(verdict(grants, '/home/u/notes/a/b')).toBe('granted by /home/u/notes/a')
  })

  test('a grant ends exactly at its time', () => {
    const grants = [grant('/home/u/notes', { until: 1000 })]
    expect(verdict(grants, '/home/u/notes/a', 'read', 999)).toBe('granted by /home/u/notes')
    expect(verdict(grants, '/home/u/notes/a', 'read', 1000)).toBe('expired')
  })

  test('a denial wins over every grant, however specific', () => {
    const grants = [grant('/home/u/notes'), grant('/home/u/notes/private/a', { kind: 'file', write: true })]
    expect(verdict(grants, '/home/u/notes/private/a')).toBe('denied-by-rule')
    expect(verdict(grants, '/home/u/notes/private')).toBe('denied-by-rule')
    expect(verdict(grants, '/home/u/notes/private2')).toBe('granted by /home/u/notes')
    expect(verdict([grant('/home/u/project/x')], '/home/u/project/.env.local')).toBe('denied-by-rule')
  })

  test('a denial covers every spelling in upper and lower case', () => {
    const grants = [grant('/home/u/notes'), grant('/home/u/project/x')]
    expect(verdict(grants, '/home/u/notes/PRIVATE/a')).toBe('denied-by-rule')
    expect(verdict(grants, '/home/u/project/.ENV')).toBe('denied-by-rule')
    expect(verdict(grants, '/home/u/notes/privat')).toBe('granted by /home/u/notes')
    expect(verdict([grant('/home/u/Project', { write: true })], '/home/u/Project/a', 'write')).toBe(
      'protected',
    )
  })

  test('P2 nothing that the host runs or trusts is written, and it may be read', () => {
    const grants = [grant('/srv/other', { write: true })]
    for (const name of [
      '.git/hooks/x',
      'deep/er/.git/config',
      '.vscode',
      '.envrc',
      'a/.config/mise/x',
      '.Git/x',
    ])
      expect([name, verdict(grants, `/srv/other/${name}`, 'write')]).toEqual([name, 'protected'])
    for (const name of [
      '.bashrc',
      '.Profile',
      '.config/autostart/x.desktop',
      '.local/bin/ls',
      '.ssh/authorized_keys',
    ])
      expect([name, verdict(grants, `/srv/other/${name}`, 'write')]).toEqual([name, 'protected'])
    expect(verdict(grants, '/srv/other/.bashrc')).toBe('granted by /srv/other')
    expect(verdict(grants, '/srv/other/bin/bashrc', 'write')).toBe('granted by /srv/other')
    expect(verdict(grants, '/srv/other/.config/app.json', 'write')).toBe('granted by /srv/other')
    expect(verdict(grants, '/srv/other/.git/config')).toBe('granted by /srv/other')
    expect(verdict(grants, '/srv/other/src/git.ts', 'write')).toBe('granted by /srv/other')
  })

  test('nothing in the project is written this way', () => {
    expect(verdict([grant('/home/u/project/src', { write: true })], '/home/u/project/src/a', 'write')).toBe(
      'protected',
    )
  })

  test('one more grant never takes anything away, and one more denial never gives', () => {
    const path = fc
      .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 })
      .map(names => `/${names.join('/')}`)
    const any = path.chain(at => fc.record({ write: fc.boolean() }).map(more => grant(at, more)))
    const access = fc.constantFrom('read' as const, 'write' as const)
    fc.assert(
      fc.property(fc.array(any), any, path, access, path, (grants, more, asked, how, denied) => {
        const request = { path: asked, access: how, now: 0 }
        const { ok } = decideGrant(policy, grants, request)
        if (ok) expect(decideGrant(policy, [...grants, more], request).ok).toBe(true)
        const stricter = {
          ...policy,
          files: { ...policy.files, deny: [{ rule: { kind: 'path' as const, path: host(denied) }, source }] },
        }
        if (!ok) expect(decideGrant(stricter, grants, request).ok).toBe(false)
      }),
    )
  })
})

describe('what may be granted at all', () => {
  const why = (path: string, write = false) => checkGrantable(policy, world, { path: host(path), write })?.why
  test.each([
    '/',
    '/home',
    '/home/u',
    '/home/u/.pen',
    '/home/u/.pen/sandboxes/x',
    '/proc/1/environ',
    '/sys/kernel',
    '/dev/sda',
    '/run/user/1000/bus',
    '/etc',
    '/home/u/project',
    '/home/u/notes/private/a',
    '/home/u/project/.env',
  ])('%s is not', path => {
    expect(why(path)).toBeString()
  })

  test('ordinary files and directories are, and in the project for reading only', () => {
    for (const path of ['/home/u/notes', '/home/u/notes/a', '/etc/hosts', '/srv/data', '/home/u/project/src'])
      expect([path, why(path)]).toEqual([path, undefined])
    expect(why('/home/u/notes', true)).toBeUndefined()
    expect(why('/home/u/project/src', true)).toContain('mounts decide')
    expect(why('/home/u/.npmrc', true)).toBeString()
    expect(why('/srv/x/.git', true)).toBeString()
  })
})

describe('the command that would grant it', () => {
  test('is one word to a shell, whatever a sandbox asked for', () => {
    expect(grantCommand('/home/u/a-b_c.txt', 'read')).toBe('pen grant /home/u/a-b_c.txt')
    expect(grantCommand('/home/u/a b', 'write')).toBe("pen grant '/home/u/a b' --rw")
    expect(grantCommand("/x'; rm -rf ~ #", 'read')).toBe(`pen grant '/x'"'"'; rm -rf ~ #'`)
    expect(grantCommand('/x/$(id)`id`', 'read')).toBe("pen grant '/x/$(id)`id`'")
  })

  test('is not given for a path that cannot be quoted', () => {
    for (const path of ['/a\nb', '/a\u001b[2J', '/a\u202eb', '/é', `/${'x'.repeat(600)}`])
      expect(grantCommand(path, 'read')).toBeUndefined()
  })
})
