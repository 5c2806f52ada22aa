import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PenError } from '../../base/error.ts'
import {
  absolute,
  canonicalize,
  checkMountSource,
  depth,
  guest,
  type HostPath,
  isWithin,
  type Located,
  normalize,
  type PathWorld,
} from './path.ts'

/** Links by their absolute path, followed as the kernel does: component by component, from the root. */
function worldWith(links: Readonly<Record<string, string>> = {}): PathWorld {
  const locate = (path: string): Located => {
    let rest = path.split('/').filter(part => part !== '')
    let at: string[] = []
    for (let followed = 0; rest.length > 0; ) {
      const [part = '', ...others] = rest
      rest = others
      if (part === '.' || part === '') continue
      if (part === '..') {
        at = at.slice(0, -1)
        continue
      }
      const to = Object.hasOwn(links, `/${[...at, part].join('/')}`)
        ? links[`/${[...at, part].join('/')}`]
        : undefined
      if (followed > 40) throw new PenError('PATH_REFUSED', { what: 'too many links' })
      if (to === undefined) at = [...at, part]
      else {
        followed++
        rest = [...to.split('/'), ...rest]
        if (to.startsWith('/')) at = []
      }
    }
    return { real: `/${at.join('/')}`, kind: 'directory' }
  }
  return {
    workspace: '/h/u/ws' as HostPath,
    home: '/h/u' as HostPath,
    state: '/h/u/.pen' as HostPath,
    locate,
  }
}

const world = worldWith()
const made = (text: string, trust: 'user' | 'untrusted' = 'user', at = world) => {
  const path = canonicalize(text, trust, at)
  return path.ok ? (path.value as string) : { why: path.why }
}
const refused = { why: expect.any(String) }

describe('a path in a config', () => {
  test.each([
    ['src', '/h/u/ws/src'],
    ['./src/', '/h/u/ws/src'],
    ['src//a/./b', '/h/u/ws/src/a/b'],
    ['.', '/h/u/ws'],
    ['~/notes', '/h/u/notes'],
    ['~', '/h/u'],
    ['/data/x/', '/data/x'],
    ['src/../lib', '/h/u/ws/lib'],
    ['/data/../etc', '/etc'],
    ['/../..', '/'],
    ['a b', '/h/u/ws/a b'],
    ['$', '/h/u/ws/$'],
    ['price$', '/h/u/ws/price$'],
  ])('%s means %s', (text, path) => {
    expect(made(text)).toBe(path)
  })

  test.each([
    ['', 'empty'],
    ['a\0b', 'control'],
    ['a\nb', 'control'],
    ['a\u001b[2J', 'control'],
    ['a\u2028b', 'control'],
    ['~other/x', 'only ~/'],
    ['$HOME/x', 'not expanded'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell variable that must stay text
    ['${HOME}/x', 'not expanded'],
    ['$(id)', 'not expanded'],
    ['`id`', 'not expanded'],
    ['https://example.com/x', 'URL'],
    ['file:///etc/passwd', 'URL'],
    ['x'.repeat(4097), 'longer'],
  ])('%j is refused, and never expanded', (text, why) => {
    const path = absolute(text, world)
    expect(path.ok ? path.value : path.why).toContain(why)
  })

  test('..  out of the workspace needs the user and an explicit path', () => {
    expect(made('../other')).toEqual(refused)
    expect(made('src/../../other')).toEqual(refused)
    expect(made('/h/u/other')).toBe('/h/u/other')
    expect(made('~/other')).toBe('/h/u/other')
  })

  test('an untrusted document reaches no place outside the workspace, in no spelling', () => {
    for (const text of ['../other', 'a/../b', '/h/u/other', '~/other', '/', '~', '/h/u/ws/../other'])
      expect([text, made(text, 'untrusted')]).toEqual([text, refused])
    for (const text of ['src', '.', '/h/u/ws/src', '~/ws/src'])
      expect(String(made(text, 'untrusted'))).toStartWith('/h/u/ws')
  })

  test('a link inside the workspace that leads out is refused, and one that stays inside is followed', () => {
    const linked = worldWith({ '/h/u/ws/out': '/h/u/.ssh', '/h/u/ws/in': 'src', '/h/u/ws/up': '..' })
    expect(made('out/id_rsa', 'user', linked)).toEqual(refused)
    expect(made('out/id_rsa', 'untrusted', linked)).toEqual(refused)
    expect(made('/h/u/ws/out', 'untrusted', linked)).toEqual(refused)
    // The agent can make such a link after the user has named the place, in whatever spelling.
    for (const text of ['/h/u/ws/out', '/h/u/ws/out/id_rsa', '~/ws/out']) {
      expect(made(text, 'user', linked)).toEqual(refused)
    }
    expect(made('/h/u/.ssh/id_rsa', 'user', linked)).toBe('/h/u/.ssh/id_rsa')
    expect(made('up/ws/src', 'untrusted', linked)).toBe('/h/u/ws/src')
    expect(made('up', 'untrusted', linked)).toEqual(refused)
    expect(made('in/x', 'untrusted', linked)).toBe('/h/u/ws/src/x')
  })

  test('links in a circle are a reason to refuse, not a failure', () => {
    const circle = worldWith({ '/h/u/ws/a': 'b', '/h/u/ws/b': 'a' })
    expect(made('a/x', 'user', circle)).toEqual({ why: 'too many links' })
    expect(made('c/x', 'user', circle)).toBe('/h/u/ws/c/x')
  })
})

describe('a canonical path', () => {
  const part = fc.constantFrom('a', 'b', 'ws', 'u', '..', '.', '', 'out')
  const anyText = fc
    .tuple(fc.constantFrom('', '/', '~/', './', '/h/u/ws/'), fc.array(part, { minLength: 1, maxLength: 5 }))
    .map(([start, parts]) => start + parts.join('/'))
  const anyWorld = fc
    .dictionary(
      fc.constantFrom('/h/u/ws/a', '/h/u/ws/b', '/h/u/ws/a/b', '/h/u/ws/out', '/h/u/a', '/a', '/b'),
      fc.constantFrom('..', '../..', 'b', 'a/b', '/h/u', '/h/u/ws/b', '/etc', 'out/../..', '/'),
      { noNullPrototype: true },
    )
    .map(worldWith)
  const anyTrust = fc.constantFrom<('user' | 'untrusted')[]>('user', 'untrusted')

  test('stays what it is when it is canonicalized again', () => {
    fc.assert(
      fc.property(anyText, anyWorld, anyTrust, (text, at, trust) => {
        const path = canonicalize(text, trust, at)
        if (path.ok) expect(canonicalize(path.value, trust, at)).toEqual(path)
      }),
      { numRuns: 1000 },
    )
  })

  test('of an untrusted document lies in the workspace, through whatever links', () => {
    fc.assert(
      fc.property(anyText, anyWorld, (text, at) => {
        const path = canonicalize(text, 'untrusted', at)
        if (path.ok) {
          expect(isWithin(path.value, at.workspace)).toBe(true)
          expect(at.locate(path.value).real).toBe(path.value)
        }
      }),
      { numRuns: 1000 },
    )
  })

  test('has no dot, double dot or empty part', () => {
    fc.assert(
      fc.property(anyText, anyWorld, anyTrust, (text, at, trust) => {
        const path = canonicalize(text, trust, at)
        if (path.ok) expect(normalize(path.value)).toBe(path.value)
      }),
    )
  })
})

describe('what is within what', () => {
  test('is decided by whole parts, never by a common beginning', () => {
    expect(isWithin('/w/ws/x', '/w/ws')).toBe(true)
    expect(isWithin('/w/ws', '/w/ws')).toBe(true)
    expect(isWithin('/w/ws-evil/x', '/w/ws')).toBe(false)
    expect(isWithin('/w', '/w/ws')).toBe(false)
    expect(isWithin('/anything', '/')).toBe(true)
  })

  test('a path is as specific as it has parts', () => {
    expect(['/', '/a', '/a/b'].map(depth)).toEqual([0, 1, 2])
  })
})

describe('a mount source', () => {
  const check = (path: string) => checkMountSource(path as HostPath, world).ok

  test.each([
    '/',
    '/h',
    '/h/u',
    '/h/u/.pen',
    '/h/u/.pen/sandboxes/x',
    '/proc',
    '/proc/self',
    '/sys/fs',
    '/dev/shm',
    '/run',
    '/run/user/1000',
  ])('%s is refused', path => {
    expect(check(path)).toBe(false)
  })

  test.each(['/h/u/ws', '/h/u/ws/src', '/h/u/other', '/h/u/.gitconfig', '/data', '/running', '/h/u/.pencil'])(
    '%s may be one',
    path => {
      expect(check(path)).toBe(true)
    },
  )

  test('a whole part of the system is refused, and a directory in it is not', () => {
    for (const path of ['/home', '/Users', '/root', '/etc', '/usr', '/var', '/tmp', '/mnt'])
      expect([path, check(path), check(`${path}/x`)]).toEqual([path, false, true])
  })

  test('an ancestor of the workspace is refused also where home is elsewhere', () => {
    const far = { ...world, workspace: '/srv/code/ws' as HostPath }
    expect(checkMountSource('/srv/code' as HostPath, far).ok).toBe(false)
    expect(checkMountSource('/srv/code/ws' as HostPath, far).ok).toBe(true)
    expect(checkMountSource('/srv/code/ws2' as HostPath, far).ok).toBe(true)
  })
})

describe('a place inside the sandbox', () => {
  test.each([
    'relative',
    '',
    '/../x',
    '/a/../../x',
    '/',
    '/proc/1',
    '/sys',
    '/dev/null',
    '/usr',
    '/bin/sh',
    '/a\nb',
  ])('%j is refused', text => {
    expect(guest(text).ok).toBe(false)
  })

  test.each([
    ['/home/agent/.npm', '/home/agent/.npm'],
    ['/srv//x/', '/srv/x'],
    ['/usr/local/data', '/usr/local/data'],
  ])('%s is taken', (text, path) => {
    expect(guest(text)).toEqual({ ok: true, value: path as never })
  })
})
