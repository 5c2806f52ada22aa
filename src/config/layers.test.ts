import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryProject, temporaryProject, withHome } from '../../test/temporary-project.ts'
import { PenError, showPlace } from '../base/error.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { type Layers, readLayers } from './layers.ts'
import { findProject } from './project.ts'

const layersOf = (project: TemporaryProject, flags: object = {}): Promise<Layers> =>
  withHome(
    project.home,
    async () => await readLayers(findProject(project.workspace), { flags, offline: false }),
  )

async function refusal(project: TemporaryProject): Promise<string> {
  const error: unknown = await layersOf(project).then(
    () => new Error('it was taken'),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof PenError)) throw error
  expect(error.exitCode).toBe(2)
  expect(error.hint).toBeString()
  return `${error.message} | ${showPlace(error.at ?? '')
    .replace(`${project.workspace}/`, '')
    .replace(`${project.stateDir}/`, '')}`
}

describe('the layers of a project', () => {
  test('are none without any document or flag', async () => {
    using project = temporaryProject()
    expect(await layersOf(project)).toEqual({ trusted: [], untrusted: [] })
  })

  test('are the live config, the text lists and the command line, weakest first, and the project’s document apart', async () => {
    using project = temporaryProject()
    project.writeLive('config.json', '{"limits":{"pids":9}}')
    project.writeLive('http-allowlist.txt', 'a.test:443 # the registry\n\n# nothing\nb.test:22\n')
    project.writeLive('network-allowlist.txt', '203.0.113.7:5432\nhost.pen.internal:80\n')
    project.write('agent-permissions.json', '{"limits":{"pids":3}}')
    const { trusted, untrusted } = await layersOf(project, { limits: { cpus: 1 } })
    expect(trusted.map(layer => [layer.name, layer.trust])).toEqual([
      ['live config', 'user'],
      ['live allowlists', 'user'],
      ['command line', 'user'],
    ])
    expect(untrusted.map(layer => [layer.name, layer.trust])).toEqual([
      ['agent-permissions.json', 'untrusted'],
    ])
    const rules = [trusted[1]?.settings['network.http'], trusted[1]?.settings['network.tcp']]
    expect(
      rules.map(list => list?.items.map(({ rule, source }) => [printRule(rule), source.place?.line])),
    ).toEqual([
      [
        ['a.test:443', 1],
        ['b.test:22', 4],
      ],
      [
        ['203.0.113.7:5432', 1],
        ['host.pen.internal:80', 2],
      ],
    ])
  })

  test('never hold the .pen/ directory of the project, whatever is in it', async () => {
    using project = temporaryProject()
    project.write('.pen/config.json', '{"network":{"http":["evil.test"]},"files":{"write":["/"]}}')
    project.write('.pen/http-allowlist.txt', 'evil.test:443\n')
    project.write('.pen/policy.json', 'not even JSON')
    project.write('http-allowlist.txt', 'evil.test:443\n')
    expect(await layersOf(project)).toEqual({ trusted: [], untrusted: [] })
  })
})

describe('a malformed line of a text list', () => {
  test.each([
    ['http-allowlist.txt', 'a.test:443\nevil test\n', 'http-allowlist.txt:2:5'],
    ['http-allowlist.txt', 'a.test:443#x\n', 'http-allowlist.txt:1:11'],
    ['http-allowlist.txt', 'a.test:0\n', 'http-allowlist.txt:1:1'],
    ['http-allowlist.txt', '203.0.113.7:443\n', 'http-allowlist.txt:1:1'],
    ['http-allowlist.txt', '*\n', 'http-allowlist.txt:1:1'],
    ['http-allowlist.txt', '*.com\n', 'http-allowlist.txt:1:1'],
    ['network-allowlist.txt', '# ok\n127.0.0.1:80\n', 'network-allowlist.txt:2:1'],
    ['network-allowlist.txt', 'a.test:443\n', 'network-allowlist.txt:1:1'],
    ['network-allowlist.txt', '203.0.113.7\n', 'network-allowlist.txt:1:1'],
  ])('%s %j is an error at %s', async (file, text, place) => {
    using project = temporaryProject()
    project.writeLive(file, text)
    expect(await refusal(project)).toEndWith(place)
  })
})

describe('a hostile agent-permissions.json refuses the whole run', () => {
  const bytes = (text: string) => new TextEncoder().encode(text)
  test.each<[string, string | Uint8Array, string]>([
    ['empty', '', 'agent-permissions.json:1:1'],
    ['not JSON', 'profile: strict', 'agent-permissions.json:1:1'],
    ['a comment', '{ // x\n}', 'agent-permissions.json:1:3'],
    ['a trailing comma', '{"version":1,}', 'agent-permissions.json:1:13'],
    ['a duplicate key', '{"network":{"offline":true},\n"network":{}}', 'agent-permissions.json:2:1'],
    [
      'a duplicate key in another spelling',
      '{"profile":"strict","\\u0070rofile":"dev"}',
      'agent-permissions.json:1:21',
    ],
    ['__proto__', '{"__proto__":{"allowUserExpansion":true}}', 'agent-permissions.json:1:2'],
    ['an unknown key', '{"netwrok":{}}', 'agent-permissions.json:1:2'],
    ['a text for a boolean', '{"network":{"offline":"false"}}', 'agent-permissions.json:1:23'],
    ['a list for an object', '{"files":[]}', 'agent-permissions.json:1:10'],
    ['a number for a path', '{"files":{"read":[1]}}', 'agent-permissions.json:1:19'],
    ['a NUL in a path', '{"files":{"read":["a\\u0000b"]}}', 'agent-permissions.json:1:21'],
    ['a byte order mark', '\ufeff{}', 'agent-permissions.json:1:1'],
    [
      'bytes that are not UTF-8',
      Uint8Array.of(...bytes('{"env":{"A":"'), 0xff, ...bytes('"}}')),
      'agent-permissions.json:1:14',
    ],
    ['UTF-16', Uint8Array.of(0xff, 0xfe, 0x7b, 0, 0x7d, 0), 'agent-permissions.json:1:1'],
    ['a number beyond all bounds', '{"limits":{"cpus":1e400}}', 'agent-permissions.json:1:19'],
    ['a million brackets', '['.repeat(60_000), 'agent-permissions.json:1:33'],
    ['a path that escapes', '{"files":{"read":["../../etc"]}}', 'agent-permissions.json:1:19'],
    ['an absolute path', '{"files":{"read":["/etc"]}}', 'agent-permissions.json:1:19'],
    ['a newer version', '{"version":2}', 'agent-permissions.json:1:12'],
    ['more than 64 KiB', `{"files":{"read":["${'a'.repeat(65_536)}"]}}`, 'agent-permissions.json'],
  ])('%s', async (_, content, place) => {
    using project = temporaryProject()
    project.write('agent-permissions.json', content)
    expect(await refusal(project)).toEndWith(place)
  })

  test('a link, even to a good file', async () => {
    using project = temporaryProject()
    project.write('good.json', '{}')
    symlinkSync('good.json', join(project.workspace, 'agent-permissions.json'))
    expect(await refusal(project)).toContain('symbolic link')
  })

  test('a dangling link', async () => {
    using project = temporaryProject()
    symlinkSync('/nowhere/at/all', join(project.workspace, 'agent-permissions.json'))
    expect(await refusal(project)).toContain('symbolic link')
  })

  test('a directory', async () => {
    using project = temporaryProject()
    mkdirSync(join(project.workspace, 'agent-permissions.json'))
    expect(await refusal(project)).toContain('is a directory')
  })

  test('a pipe, without waiting for a writer', async () => {
    using project = temporaryProject()
    const made = Bun.spawnSync(['mkfifo', join(project.workspace, 'agent-permissions.json')])
    expect(made.exitCode).toBe(0)
    expect(await refusal(project)).toContain('is a pipe')
  })

  test('a link to a device', async () => {
    using project = temporaryProject()
    symlinkSync('/dev/zero', join(project.workspace, 'agent-permissions.json'))
    expect(await refusal(project)).toContain('symbolic link')
  })

  test('a link out of the workspace that it names', async () => {
    using project = temporaryProject()
    symlinkSync('/etc', join(project.workspace, 'out'))
    project.write('agent-permissions.json', '{"files":{"read":["./out"]}}')
    expect(await refusal(project)).toContain('a link that leads out of the workspace')
  })

  test('and its twin, a plain one, is read', async () => {
    using project = temporaryProject()
    project.write('agent-permissions.json', '{"files":{"read":["./src"]}}')
    expect((await layersOf(project)).untrusted).toHaveLength(1)
  })
})

describe('the live config', () => {
  test('that every user may write is refused: it may grant', async () => {
    using project = temporaryProject()
    project.writeLive('config.json', '{}')
    chmodSync(join(project.stateDir, 'config.json'), 0o666)
    expect(await refusal(project)).toContain('may be written by every user')
    chmodSync(join(project.stateDir, 'config.json'), 0o644)
    expect((await layersOf(project)).trusted).toHaveLength(1)
  })

  test('that is a link is refused', async () => {
    using project = temporaryProject()
    mkdirSync(project.stateDir, { recursive: true })
    writeFileSync(join(project.root, 'elsewhere.json'), '{}')
    symlinkSync(join(project.root, 'elsewhere.json'), join(project.stateDir, 'config.json'))
    expect(await refusal(project)).toContain('symbolic link')
  })
})
