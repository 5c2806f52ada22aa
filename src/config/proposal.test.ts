import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryProject, temporaryProject, withHome } from '../../test/temporary-project.ts'
import { PenError, showPlace } from '../base/error.ts'
import { backUp } from './backup.ts'
import { type Initialized, initialize } from './initialize.ts'
import { findProject, projectHere } from './project.ts'
import { applyProposal, readProposal } from './proposal.ts'

const inside = <T>(at: TemporaryProject, work: () => Promise<T>) => withHome(at.home, work)
const proposal = (at: TemporaryProject) => inside(at, () => readProposal(findProject(at.workspace)))
const told = async (at: TemporaryProject) => {
  const { differences, elsewhere } = await proposal(at)
  const show = ({ key, change, item, widens }: (typeof differences)[number]) =>
    `${widens ? '!' : ''}${change} ${key} ${item}`
  return [
    ...differences.map(show),
    ...elsewhere.map(({ profile, difference }) => `${profile}: ${show(difference)}`),
  ]
}
const refusal = async (work: Promise<unknown>): Promise<string> => {
  const error: unknown = await work.then(
    () => new Error('it was taken'),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof PenError)) throw error
  return `${error.code} ${error.message} | ${showPlace(error.at ?? '')}`
}
const liveText = (at: TemporaryProject) => readFileSync(join(at.stateDir, 'config.json'), 'utf8')

describe('a proposal of the project', () => {
  test('is compared by its meaning with the live config', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"network":{"http":["a.test"]},"limits":{"pids":9}}')
    at.write('.pen/config.json', '{ "limits": { "pids": 9 }, "network": { "http": ["b.test:443"] } }')
    expect(await told(at)).toEqual(['!added network.http b.test:443', 'removed network.http a.test:443'])
  })

  test('has text lists in it, and leaves those that the user keeps', async () => {
    using at = temporaryProject()
    at.writeLive('http-allowlist.txt', 'mine.test:443\n')
    at.write('.pen/http-allowlist.txt', '# theirs\nb.test:22 # git\n')
    at.write('.pen/network-allowlist.txt', '203.0.113.7:5432\n')
    expect(await told(at)).toEqual(['!added network.http b.test:22', '!added network.tcp 203.0.113.7:5432'])
    await inside(at, async () => applyProposal(findProject(at.workspace), await proposal(at)))
    expect(JSON.parse(liveText(at))).toEqual({
      version: 1,
      network: { http: ['b.test:22'], tcp: ['203.0.113.7:5432'] },
    })
    expect(await told(at)).toEqual([])
    expect(readFileSync(join(at.stateDir, 'http-allowlist.txt'), 'utf8')).toBe('mine.test:443\n')
  })

  test('that widens only under a profile of the command line is listed too', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"version":1}')
    at.write('.pen/config.json', '{"network":{"mode":"gateway"},"limits":{"pids":4096}}')
    expect(await told(at)).toEqual([
      'strict: !changed network.mode gateway',
      'strict: !changed limits.pids 4096',
    ])
  })

  test('is applied as the bytes that were read, even if the project has changed', async () => {
    using at = temporaryProject()
    const shown = '{"version":1,\n      "network": {"http": ["b.test"]}}'
    at.write('.pen/config.json', shown)
    const seen = await proposal(at)
    at.write('.pen/config.json', '{"version":1,"network":{"http":["evil.test"]}}')
    expect(await inside(at, () => applyProposal(findProject(at.workspace), seen))).toBe(true)
    expect(liveText(at)).toBe(shown)
  })

  test('does not overwrite an edit made in the meantime', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"version":1}')
    at.write('.pen/config.json', '{"network":{"http":["b.test"]}}')
    const seen = await proposal(at)
    at.writeLive('config.json', '{"network":{"deny":["b.test"]}}')
    expect(await refusal(inside(at, () => applyProposal(findProject(at.workspace), seen)))).toContain(
      'STATE the live config was changed during your review',
    )
    expect(liveText(at)).toBe('{"network":{"deny":["b.test"]}}')
  })

  test('has a digest of every byte on both sides', async () => {
    using at = temporaryProject()
    at.write('.pen/config.json', '{"version":1}')
    const digests = [(await proposal(at)).digest]
    for (const change of [
      () => at.write('.pen/config.json', '{"version":1} '),
      () => at.write('.pen/http-allowlist.txt', '# \n'),
      () => at.writeLive('config.json', '{"version":1}'),
      () => at.writeLive('network-allowlist.txt', '# \n'),
    ]) {
      change()
      expect((await proposal(at)).digest).toBe((await proposal(at)).digest)
      digests.push((await proposal(at)).digest)
    }
    expect(digests.length).toBe(new Set(digests).size)
    expect(digests[0]).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  test.each([
    ['config.json', '{"version":1,"netwrk":{}}', /netwrk.* \| .*\/\.pen\/config\.json:1:14$/],
    ['config.json', '{"env":{"A":"\u202e"}}', /U\+202E/],
    ['config.json', `{"env":{"A":"${'x'.repeat(70_000)}"}}`, /larger than/],
    ['http-allowlist.txt', 'a.test:443\n*\n', /\| .*\/\.pen\/http-allowlist\.txt:2:1$/],
  ])('with a mistake in %s is refused whole', async (name, text, expected) => {
    using at = temporaryProject()
    at.write(`.pen/${name}`, text)
    expect(await refusal(proposal(at))).toMatch(expected)
  })

  test('is not there without a document, and an empty directory takes nothing away', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"version":1}')
    expect(await refusal(proposal(at))).toContain('there is no configuration in')
    at.write('.pen/README', '')
    expect(await refusal(proposal(at))).toContain('there is no configuration in')
  })
})

describe('a new project', () => {
  const init = (at: TemporaryProject): Promise<Initialized> =>
    inside(at, () => initialize(projectHere(at.workspace), '{}\n'))

  test('has its config in both places, the same bytes, with the groups that its files call for', async () => {
    using at = temporaryProject()
    at.write('Cargo.toml', '')
    expect(await init(at)).toEqual({
      wrote: true,
      live: 'written',
      groups: [{ name: 'crates', because: 'Cargo.toml' }],
      differs: false,
    })
    expect(liveText(at)).toBe(readFileSync(join(at.workspace, '.pen/config.json'), 'utf8'))
    expect(JSON.parse(liveText(at))).toEqual({
      $schema: './config.schema.json',
      version: 1,
      profile: 'coding',
      network: { groups: ['crates'] },
    })
    at.write('go.mod', '')
    expect(await init(at)).toEqual({ wrote: false, live: 'kept', groups: [], differs: false })
    expect(liveText(at)).not.toContain('go')
  })

  test.each(['config.json', 'http-allowlist.txt'])(
    'that came with a %s has nothing of it in force',
    async name => {
      using at = temporaryProject()
      at.write(
        `.pen/${name}`,
        name === 'config.json' ? '{"network":{"http":["evil.test"]}}' : 'evil.test:443\n',
      )
      expect(await init(at)).toEqual({
        wrote: false,
        live: 'absent',
        groups: [],
        differs: name === 'config.json',
      })
      expect(existsSync(join(at.stateDir, 'config.json'))).toBe(false)
    },
  )

  test('keeps a live config that was there before', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"network":{"http":["mine.test"]}}')
    expect(await init(at)).toEqual({ wrote: true, live: 'kept', groups: [], differs: true })
    expect(liveText(at)).toBe('{"network":{"http":["mine.test"]}}')
  })

  test('is the current directory, also below one that pen knows', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"version":1}')
    at.write('part/x', '')
    await inside(at, () => initialize(projectHere(join(at.workspace, 'part')), '{}\n'))
    expect(existsSync(join(at.workspace, 'part/.pen/config.json'))).toBe(true)
    expect(existsSync(join(at.workspace, '.pen'))).toBe(false)
  })
})

describe('a backup', () => {
  const backup = (at: TemporaryProject, withPassword = false) =>
    inside(at, () => backUp(findProject(at.workspace), { withPassword, schema: '{}\n' }))

  test('makes .pen/ mean what is in force', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"network":{"http":["a.test"]},"env":{"A":"1","B":{"from":"host"}}}')
    at.writeLive('http-allowlist.txt', 'list.test:80\n')
    at.write('.pen/http-allowlist.txt', 'gone.test:80\n')
    const { changed, removed, values } = await backup(at)
    expect({ changed, removed, values }).toEqual({
      changed: true,
      removed: ['http-allowlist.txt'],
      values: ['env.A'],
    })
    expect(await told(at)).toEqual([])
    expect((await backup(at)).changed).toBe(false)
  })

  test('copies the bytes where there is one document', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"version": 1\n}')
    await backup(at)
    expect(readFileSync(join(at.workspace, '.pen/config.json'), 'utf8')).toBe('{"version": 1\n}')
  })

  test('copies no password into the project without --with-password', async () => {
    using at = temporaryProject()
    at.writeLive('config.json', '{"network":{"upstreamProxy":"http://u:canary@p.test:3128"}}')
    expect(await refusal(backup(at))).not.toContain('canary')
    expect(existsSync(join(at.workspace, '.pen'))).toBe(false)
    expect((await backup(at, true)).changed).toBe(true)
  })

  test('needs a live config', async () => {
    using at = temporaryProject()
    expect(await refusal(backup(at))).toContain('there is no live config')
  })
})
