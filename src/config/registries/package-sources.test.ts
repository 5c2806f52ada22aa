import { expect, test } from 'bun:test'
import type { Mirror } from './mirror.ts'
import { packageSources } from './package-sources.ts'

const HEAD = '# by pen, from the configuration on the host, without its tokens'
const NOTHING = { files: [], env: [] }

const named = (file: string, setting: string, ...urls: string[]): Mirror[] =>
  urls.map(url => ({ url, setting, at: { file, line: 1, column: 1 } }))

test('npm: the registries, the user’s before the system’s, without names and passwords', () => {
  const mirrors = [
    ...named('~/.npmrc', 'registry', 'https://you:secret@r.example.com/npm/'),
    ...named('~/.npmrc', '@team:registry', 'https://team.example.com'),
    ...named('/etc/npmrc', 'registry', 'https://other.example.com/'),
    ...named('/etc/npmrc', '@more:registry', 'https://more.example.com/'),
  ]
  expect(packageSources('npm', mirrors)).toEqual({
    files: [
      {
        at: '/etc/npmrc',
        text: `${HEAD}\nregistry=https://r.example.com/npm/\n@team:registry=https://team.example.com/\n@more:registry=https://more.example.com/\n`,
      },
    ],
    env: [{ name: 'npm_config_globalconfig', value: '/etc/npmrc' }],
  })
})

test('nothing where only a tool’s own default counts, the packages lie on a disk, or no file would be read', () => {
  expect(packageSources('npm', [{ url: 'https://default.example.com/', at: 'npm config get' }])).toEqual(
    NOTHING,
  )
  expect(packageSources('pip', named('pip.conf', 'index-url', 'file:///srv/wheels'))).toEqual(NOTHING)
  expect(packageSources('apt', named('sources.list', 'deb', 'https://deb.example.com/'))).toEqual(NOTHING)
  expect(packageSources(undefined, [])).toEqual(NOTHING)
})

test('pip: the last file that names a setting decides it', () => {
  const mirrors = [
    ...named('/etc/pip.conf', 'index-url', 'https://a.example.com/simple'),
    ...named('/etc/pip.conf', 'extra-index-url', 'https://x.example.com/'),
    ...named('~/pip.conf', 'extra-index-url', 'https://u:p@y.example.com/simple', 'https://z.example.com/'),
  ]
  expect(packageSources('pip', mirrors).files).toEqual([
    {
      at: '/etc/pip.conf',
      text: `${HEAD}\n[global]\nindex-url = https://a.example.com/simple\nextra-index-url =\n    https://y.example.com/simple\n    https://z.example.com/\n`,
    },
  ])
})

test('go: the proxies that the user set, as a variable', () => {
  const mirrors = named(
    '~/.config/go/env',
    'GOPROXY',
    'https://u:p@go.example.com/mod',
    'https://two.example.com',
  )
  expect(packageSources('go', mirrors).env).toEqual([
    { name: 'GOPROXY', value: 'https://go.example.com/mod,https://two.example.com/' },
  ])
})

test('P15 no credential in an address reaches the sandbox; the path does', () => {
  for (const [url, address] of [
    ['https://r.example.com/npm/?token=secret', 'https://r.example.com/npm/'],
    ['https://r.example.com/npm/#secret', 'https://r.example.com/npm/'],
    ['https://you%3Asecret@r.example.com/npm/', 'https://r.example.com/npm/'],
    // To a parser of addresses the host ends here; to npm and pip it begins behind the last @.
    ['https://you\\secret@r.example.com/npm/', 'https://r.example.com/npm/'],
    ['https://you:80\\secret@r.example.com/npm/', 'https://r.example.com/npm/'],
    ['https://r.example.com/npm/ secret', 'https://r.example.com/npm/'],
    ['https://r.example.com:8443/team/npm', 'https://r.example.com:8443/team/npm'],
  ] as const) {
    const mirrors = (setting: string): Mirror[] => named('file', setting, url)
    expect(packageSources('npm', mirrors('registry')).files[0]?.text).toBe(`${HEAD}\nregistry=${address}\n`)
    expect(packageSources('pip', mirrors('index-url')).files[0]?.text).toEndWith(`index-url = ${address}\n`)
    expect(packageSources('go', mirrors('GOPROXY')).env[0]?.value).toBe(address)
  }
})
