import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PenError, showPlace } from '../base/error.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { type GroupContext, resolveGroup } from './groups.ts'

let root: string
let context: GroupContext

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pen-groups-'))
  for (const directory of ['home', 'etc', 'project', 'bin']) mkdirSync(join(root, directory))
  context = {
    home: join(root, 'home'),
    cacheDir: join(root, 'cache'),
    writable: [join(root, 'project'), join(root, 'shared')],
    etc: join(root, 'etc'),
    find: name => tools.get(name),
  }
  tools.clear()
})
afterEach(() => rmSync(root, { recursive: true }))

const tools = new Map<string, string>()

function put(path: string, text: string): string {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text, { mode: 0o644 })
  return file
}

/** A stand-in for a package manager: it records each call, then prints the given answer. */
function install(name: string, says: string, code = 0): string {
  const log = join(root, `${name}.log`)
  const file = put(
    `bin/${name}`,
    `#!/bin/sh\necho "$PWD $HOME $* \${SECRET-none}" >> '${log}'\ncat <<'END'\n${says}\nEND\nexit ${code}\n`,
  )
  chmodSync(file, 0o755)
  tools.set(name, file)
  return log
}

const rulesOf = async (name: string): Promise<string[]> =>
  (await resolveGroup(name, context)).rules.map(({ rule }) => printRule(rule)).sort()

async function refusalOf(name: string): Promise<PenError> {
  try {
    await resolveGroup(name, context)
  } catch (error) {
    if (error instanceof PenError) return error
    throw error
  }
  throw new Error('the group was resolved')
}

test('a group to install only allows reads and audits at the sources that it follows', async () => {
  install('npm', 'registry=https://packages.example.com/npm/\nglobalconfig=/nowhere')
  expect(await rulesOf('npm:install')).toEqual([
    'GET,HEAD packages.example.com:443/**',
    'POST packages.example.com:443/**/-/npm/v1/security/**',
    'POST packages.example.com:443/-/npm/v1/security/**',
  ])
  install('npm', 'registry=https://203.0.113.7/\nglobalconfig=/nowhere')
  expect((await refusalOf('npm:install')).hint).toContain('without ":install"')
})

describe('npm', () => {
  const answer = (globalconfig = '/nowhere') =>
    `registry=https://packages.example.com/\nglobalconfig=${globalconfig}`

  test('follows npm’s default registry, which may not be a private place', async () => {
    install('npm', answer())
    const group = await resolveGroup('npm', context)
    expect(group.rules.map(({ rule }) => printRule(rule))).toEqual(['packages.example.com:443'])
    expect(group.mirrors).toEqual([])
  })

  test('follows the registries in the user’s and the global npmrc, with place, and these may be private', async () => {
    const global = put('global/npmrc', '@team:registry=http://team.example.com:8081/npm/\n')
    const user = put(
      'home/.npmrc',
      '; mine\nregistry = "https://me:hunter2@mirror.example.com/npm/"\n//mirror.example.com/:_authToken=hunter2\n',
    )
    install('npm', answer(global))
    const group = await resolveGroup('npm', context)
    expect(group.rules.map(({ rule }) => printRule(rule)).sort()).toEqual([
      'mirror.example.com:443',
      'packages.example.com:443',
      'team.example.com:8081',
    ])
    expect([...group.mirrors].sort() as string[]).toEqual(['mirror.example.com', 'team.example.com'])
    expect(group.rules[0]?.source.place).toEqual({ file: user, line: 2, column: 1 })
    expect(JSON.stringify(group)).not.toContain('hunter2')
  })

  test('is asked in / with the user’s home and nothing of the environment, and once', async () => {
    process.env['SECRET'] = 'hunter2'
    const log = install('npm', answer())
    await rulesOf('npm')
    await rulesOf('npm')
    delete process.env['SECRET']
    expect(readFileSync(log, 'utf8')).toBe(`/ ${context.home} config get registry globalconfig none\n`)
    expect(statSync(join(context.cacheDir, 'asked-npm.json')).mode & 0o777).toBe(0o600)
  })

  test('is asked again when npm, an npmrc or the cache has changed', async () => {
    const log = install('npm', answer(join(root, 'global/npmrc')))
    const calls = (): number => readFileSync(log, 'utf8').split('\n').length - 1
    await rulesOf('npm')
    put('home/.npmrc', 'fund=false\n')
    await rulesOf('npm')
    expect(calls()).toBe(2)
    put('global/npmrc', 'fund=false\n')
    await rulesOf('npm')
    expect(calls()).toBe(3)
    for (const broken of ['', '{', '[]', 'null', '{"stamp":1,"answer":2}']) {
      put('cache/asked-npm.json', broken)
      expect(await rulesOf('npm')).toEqual(['packages.example.com:443'])
    }
    expect(calls()).toBe(8)
    install('npm', answer().replace('packages', 'other'))
    expect(await rulesOf('npm')).toEqual(['other.example.com:443'])
  })

  test('a .npmrc in the project grants nothing', async () => {
    put('project/.npmrc', 'registry=https://evil.test/\n@team:registry=https://evil.test/\n')
    install('npm', answer())
    expect(await rulesOf('npm')).toEqual(['packages.example.com:443'])
  })

  test('a user’s npmrc that is a link is followed, but not into the project', async () => {
    install('npm', answer())
    symlinkSync(put('dotfiles/npmrc', 'registry=https://mirror.example.com/\n'), join(context.home, '.npmrc'))
    expect(await rulesOf('npm')).toContain('mirror.example.com:443')
    rmSync(join(context.home, '.npmrc'))
    symlinkSync(put('project/npmrc', 'registry=https://evil.test/\n'), join(context.home, '.npmrc'))
    expect((await refusalOf('npm')).message).toContain('where the sandbox could change it')
  })

  test('P16 no link in a writable directory chooses which file of the host counts', async () => {
    install('npm', answer())
    const mine = put('dotfiles/npmrc', 'registry=https://mirror.example.com/\n')
    const npmrc = join(context.home, '.npmrc')
    for (const [way, isRefused] of [
      ['project/way', true],
      ['shared/deep/way', true],
      ['elsewhere/way', false],
    ] as const) {
      const link = put(way, '')
      rmSync(link)
      symlinkSync(mine, link)
      symlinkSync(link, npmrc)
      if (isRefused) expect((await refusalOf('npm')).message).toContain('where the sandbox could change it')
      else expect(await rulesOf('npm')).toContain('mirror.example.com:443')
      rmSync(npmrc)
    }
    // The directory that holds it is the same under every name.
    symlinkSync(join(root, 'dotfiles'), join(root, 'alias'))
    symlinkSync(mine, npmrc)
    context = { ...context, writable: [join(root, 'alias')] }
    expect((await refusalOf('npm')).message).toContain('where the sandbox could change it')
    // What leads nowhere is no file, and names nothing.
    rmSync(mine)
    expect(await rulesOf('npm')).toEqual(['packages.example.com:443'])
  })

  test('without npm the npmrc is enough, and without both the fix is named', async () => {
    expect(await refusalOf('npm')).toMatchObject({
      code: 'GROUP',
      hint: expect.stringContaining('npm config set registry'),
    })
    put('home/.npmrc', 'registry=https://mirror.example.com/\n')
    expect(await rulesOf('npm')).toEqual(['mirror.example.com:443'])
  })

  test('an npm that fails or says nothing useful is an error, not an empty group', async () => {
    install('npm', '', 1)
    expect((await refusalOf('npm')).code).toBe('GROUP')
    install('npm', 'undefined')
    expect((await refusalOf('npm')).code).toBe('GROUP')
  })

  test('a mirror by private address is granted by address, one on loopback is refused with the way out', async () => {
    put('home/.npmrc', 'registry=http://10.0.0.5:4873/\n')
    expect(await rulesOf('npm')).toEqual(['10.0.0.5:4873'])
    put('home/.npmrc', 'registry=http://[fd00::5]:4873/\n')
    expect(await rulesOf('npm')).toEqual(['[fd00::5]:4873'])
    for (const host of ['localhost', '127.0.0.1', '[::1]']) {
      put('home/.npmrc', `registry=http://me:hunter2@${host}:4873/\n`)
      const refusal = await refusalOf('npm')
      expect(refusal.hint).toContain('host.pen.internal:4873')
      expect(`${refusal.message} ${showPlace(refusal.at ?? '')}`).not.toContain('hunter2')
    }
  })

  test('a registry that is no address is refused without repeating it', async () => {
    for (const url of ['hunter2', 'ftp://hunter2/', 'https://', 'https://hunter2@/x', 'https:hunter2']) {
      put('home/.npmrc', `registry=${url}\n`)
      const refusal = await refusalOf('npm')
      expect(refusal.code).toBe('GROUP')
      expect(refusal.message).not.toContain('hunter2')
    }
    put('home/.npmrc', `registry=https://\${HOST}/\n`)
    expect((await refusalOf('npm')).message).toContain('environment variable')
  })

  test('what npm takes for a comment is neither allowed nor written inside', async () => {
    for (const comment of [' ; ask hunter2@evil.test', '#hunter2@evil.test']) {
      put('home/.npmrc', `registry=https://mirror.example.com/npm${comment}\n`)
      const { rules, told } = await resolveGroup('npm', context)
      expect(rules.map(({ rule }) => printRule(rule))).toEqual(['mirror.example.com:443'])
      expect(told.files[0]?.text).toEndWith('\nregistry=https://mirror.example.com/npm\n')
    }
  })

  test('an odd host in a registry is refused, printable', async () => {
    put('home/.npmrc', 'registry=https://evil\u001b[2K.test/\n')
    expect((await refusalOf('npm')).message).not.toContain('\u001b')
  })
})

describe('debian and ubuntu', () => {
  test('follow one-line and deb822 sources, with the port of each scheme', async () => {
    put(
      'etc/apt/sources.list',
      '# deb http://off.example.com/ x main\ndeb [arch=amd64 signed-by=/k.gpg] http://deb.example.com/debian bookworm main # c\ndeb-src https://me:hunter2@src.example.com:8443/debian bookworm main\n',
    )
    put(
      'etc/apt/sources.list.d/a.sources',
      'Types: deb\nURIs: https://one.example.com/debian\n https://two.example.com/debian\nSuites: bookworm\n\nEnabled: no\nURIs: https://off.example.com/\n\n# URIs: https://off.example.com/\nTypes: deb\nURIs: http://10.0.0.5:3142/debian file:/srv/packages cdrom:[x]/\n',
    )
    put(
      'etc/apt/sources.list.d/b.list',
      'deb mirror+file:/nowhere/mirrors x main\ndeb http://deb.example.com/debian-security x main\n',
    )
    put('etc/apt/sources.list.d/c.list.disabled', 'deb http://off.example.com/ x main\n')
    const expected = [
      '10.0.0.5:3142',
      'deb.example.com:80',
      'one.example.com:443',
      'src.example.com:8443',
      'two.example.com:443',
    ]
    expect(await rulesOf('debian')).toEqual(expected)
    expect(await rulesOf('ubuntu')).toEqual(expected)
    expect(JSON.stringify(await resolveGroup('debian', context))).not.toContain('hunter2')
  })

  test('follow a list of mirrors', async () => {
    const list = put(
      'etc/apt/mirrors.list',
      'http://one.example.com/debian\tpriority:1\n# x\nhttps://two.example.com/debian\n',
    )
    put('etc/apt/sources.list', `deb mirror+file:${list} bookworm main\n`)
    expect(await rulesOf('debian')).toEqual(['one.example.com:80', 'two.example.com:443'])
  })

  test('are refused where apt has no sources', async () => {
    expect((await refusalOf('debian')).code).toBe('GROUP')
  })
})

describe('pypi', () => {
  test('follows pip.conf of user and system, extra indexes too', async () => {
    put('etc/pip.conf', '[global]\nindex-url = https://me:hunter2@mirror.example.com/simple\n')
    put(
      'home/.config/pip/pip.conf',
      '[global]\nextra-index-url =\n    https://one.example.com/simple\n    http://two.example.com:8080/simple\n[install]\ntrusted-host = two.example.com\n',
    )
    put('project/pip.conf', '[global]\nindex-url = https://evil.test/simple\n')
    expect(await rulesOf('pypi')).toEqual([
      'mirror.example.com:443',
      'one.example.com:443',
      'two.example.com:8080',
    ])
  })

  test('asks pip where nothing is configured, and says so when there is none', async () => {
    expect((await refusalOf('pypi')).hint).toContain('index-url')
    install('python3', '', 1)
    expect((await refusalOf('pypi')).hint).toContain('index-url')
    install('python3', 'https://index.example.com/simple\nhttps://files.example.com')
    expect(await rulesOf('pypi')).toEqual(['files.example.com:443', 'index.example.com:443'])
  })
})

describe('uv', () => {
  test('its own file counts for pypi: indexes with a name, and lists over several lines', async () => {
    put(
      'home/.config/uv/uv.toml',
      '[[index]]\nname = "mine"\nurl = "https://me:hunter2@one.example.com/simple"\n\n[pip]\nextra-index-url = [\n  "https://two.example.com/simple",\n  "http://three.example.com:8080/simple"\n]\n',
    )
    put('project/uv.toml', 'index-url = "https://evil.test/simple"\n')
    expect(await rulesOf('pypi')).toEqual([
      'one.example.com:443',
      'three.example.com:8080',
      'two.example.com:443',
    ])
    expect(JSON.stringify(await resolveGroup('pypi', context))).not.toContain('hunter2')
  })
})

describe('docker-hub', () => {
  const TOKENS = 'auth.docker.io:443'

  test('follows the mirrors in registries.conf, of that registry alone, with their lines', async () => {
    expect((await refusalOf('docker-hub')).hint).toContain('registries.conf')
    const file = put(
      'etc/containers/registries.conf',
      'unqualified-search-registries = ["docker.io"]\n\n[[registry]]\nlocation = "other.example.com"\n\n[[registry]]\nprefix = "docker.io"\nlocation = "images.example.com:5000/hub"\n[[registry.mirror]]\nlocation = "mirror.example.com"\n',
    )
    const { rules, mirrors } = await resolveGroup('docker-hub', context)
    expect(rules.map(({ rule }) => printRule(rule))).toEqual([
      TOKENS,
      'images.example.com:5000',
      'mirror.example.com:443',
    ])
    expect(rules[1]?.source.place).toEqual({ file, line: 8, column: 1 })
    expect(mirrors as readonly string[]).toEqual(['images.example.com', 'mirror.example.com'])
  })

  test('follows Docker’s daemon.json, and one that is no JSON is refused', async () => {
    put(
      'etc/docker/daemon.json',
      '{"registry-mirrors": ["https://mirror.example.com", "http://10.0.0.5:5000"]}',
    )
    expect(await rulesOf('docker-hub')).toEqual(['10.0.0.5:5000', TOKENS, 'mirror.example.com:443'])
    put('etc/docker/daemon.json', '{')
    expect((await refusalOf('docker-hub')).code).toMatch(/^CONFIG/)
  })
})

describe('crates', () => {
  test('follows replaced sources and named registries', async () => {
    expect((await refusalOf('crates')).hint).toContain('replace-with')
    put(
      'home/.cargo/config.toml',
      '[source.crates-io]\nreplace-with = "mine"\n[source."mine"]\nregistry = "sparse+https://crates.example.com/index/" # x\n[registries]\nteam.index = "https://git.example.com/index"\n[build]\nregistry = "https://no.example.com"\n',
    )
    expect(await rulesOf('crates')).toEqual(['crates.example.com:443', 'git.example.com:443'])
  })

  test('what cargo left in its cache grants nothing: a sandbox may have written it', async () => {
    put('home/.cargo/registry/index/evil.test-1949cf8c6b5b557f/config.json', '{"dl":"https://evil.test"}')
    expect((await refusalOf('crates')).code).toBe('GROUP')
  })
})

describe('go', () => {
  test('follows GOPROXY and GOSUMDB', async () => {
    install('go', 'https://proxy.example.com,https://me:hunter2@two.example.com|direct\nsum.example.com')
    expect(await rulesOf('go')).toEqual([
      'proxy.example.com:443',
      'sum.example.com:443',
      'two.example.com:443',
    ])
    install('go', 'off\noff')
    expect(await rulesOf('go')).toEqual([])
    install('go', 'direct\nsum.example.com+abc https://mirror.example.com/sumdb')
    expect(await rulesOf('go')).toEqual(['mirror.example.com:443'])
  })

  test('what the user set counts as named, with its place', async () => {
    expect((await refusalOf('go')).hint).toContain('go env -w')
    put('home/.config/go/env', 'GOPROXY=https://proxy.example.com,direct\nGOSUMDB=off\n')
    const { rules, mirrors } = await resolveGroup('go', context)
    expect(rules.map(({ rule }) => printRule(rule))).toEqual(['proxy.example.com:443'])
    expect(mirrors as readonly string[]).toEqual(['proxy.example.com'])
  })
})

test('npm prints no address with a password: the file has it, and inside it has none', async () => {
  install('npm', 'The registry option is protected', 1)
  expect((await refusalOf('npm')).message).toContain('npm did not print')
  put('home/.npmrc', 'registry=https://you:secret@r.example.com/\n//r.example.com/:_authToken=secret\n')
  expect(await rulesOf('npm')).toEqual(['r.example.com:443'])
  const { told } = await resolveGroup('npm', context)
  expect(told.files).toEqual([
    { at: '/etc/npmrc', text: expect.stringContaining('\nregistry=https://r.example.com/\n') },
  ])
  expect(JSON.stringify(told)).not.toContain('secret')
})
