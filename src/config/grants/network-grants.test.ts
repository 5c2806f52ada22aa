import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryProject, temporaryProject, withHome } from '../../../test/temporary-project.ts'
import { PenError } from '../../base/error.ts'
import { explainConnection } from '../../policy/explain.ts'
import { printRule } from '../../policy/network/net-rule.ts'
import { loadPolicy } from '../load.ts'
import { findProject, type Project } from '../project.ts'
import { claimGrant, grantFiles, newGrantFile } from './grant-files.ts'
import type { GrantView } from './grant-layer.ts'
import { addGrants, type GrantOrder, readGrants, removeGrants } from './network-grants.ts'

const RUN = '20260102-030405-1a2b3c'
const HOUR = 3_600_000
const later = () => new Date(Date.now() + HOUR)
const order = (text: string, more: Partial<GrantOrder> = {}): GrantOrder => {
  const [host = '', port] = text.split(':')
  return {
    effect: 'allow',
    rule: { kind: 'name', host: host as never, port: Number(port) as never },
    by: 'pen allow',
    once: false,
    run: undefined,
    until: later(),
    ...more,
  }
}

let temporary: TemporaryProject
let project: Project
beforeEach(async () => {
  temporary = temporaryProject()
  project = await withHome(temporary.home, async () => findProject(temporary.workspace))
  mkdirSync(project.stateDir, { recursive: true, mode: 0o700 })
})
afterEach(() => temporary[Symbol.dispose]())

const load = (grants?: GrantView) =>
  loadPolicy(project, { flags: {}, offline: false, allowUserExpansion: false, ...(grants && { grants }) })
const networkOf = async (grants?: GrantView) => {
  const { allow, deny, once } = (await load(grants)).policy.network
  const texts = (rules: typeof deny) => rules.map(({ rule }) => printRule(rule))
  return { allow: texts(allow), deny: texts(deny), once: [texts(once.allow), texts(once.deny)] }
}

describe('temporary grants', () => {
  test('P16 of a run are that run’s alone', async () => {
    addGrants(project.stateDir, [
      order('timed.test:443'),
      order('mine.test:443', { run: RUN, until: undefined }),
      order('others.test:443', { run: '20260102-030405-ffffff', until: undefined }),
    ])
    expect((await networkOf()).allow).toEqual(['timed.test:443'])
    expect((await networkOf({ run: RUN })).allow).toEqual(['timed.test:443', 'mine.test:443'])
    expect((await networkOf('shown')).allow).toEqual(['timed.test:443', 'mine.test:443', 'others.test:443'])
  })

  test('P6 count until they expire, and not after the clock was set back', async () => {
    addGrants(project.stateDir, [order('timed.test:443', { until: new Date(Date.now() + 5000) })])
    const seen = async (now: number) => (await readGrants(project.stateDir, now)).length
    expect([
      await seen(Date.now()),
      await seen(Date.now() + 5001),
      await seen(Date.now() - 2 * HOUR),
    ]).toEqual([1, 0, 0])
  })

  test('P6 of one connection are not among the rules, and are taken by one caller', async () => {
    addGrants(project.stateDir, [
      order('a.test:443', { once: true }),
      order('a.test:443', { once: true, effect: 'deny' }),
    ])
    expect(await networkOf({ run: RUN })).toEqual({
      allow: [],
      deny: [],
      once: [['a.test:443'], ['a.test:443']],
    })
    const [file = ''] = grantFiles(project.stateDir)
    const claims = Array.from({ length: 20 }, () => claimGrant(project.stateDir, file))
    expect(claims.filter(Boolean)).toHaveLength(1)
  })

  test('P16 never name a file outside their directory', () => {
    writeFileSync(join(project.stateDir, 'config.json'), '{"version":1}')
    expect(claimGrant(project.stateDir, '../config.json')).toBe(false)
    expect(readFileSync(join(project.stateDir, 'config.json'), 'utf8')).toBe('{"version":1}')
  })

  test('P16 are narrowed by the project’s document like every grant, and a denial wins over them', async () => {
    addGrants(project.stateDir, [
      order('a.test:443'),
      order('b.test:443'),
      order('b.test:443', { once: true }),
      order('a.test:443', { effect: 'deny', until: later() }),
    ])
    temporary.write('agent-permissions.json', JSON.stringify({ network: { http: ['a.test:443'] } }))
    expect(await networkOf()).toEqual({ allow: ['a.test:443'], deny: ['a.test:443'], once: [[], []] })
    const { policy } = await load()
    const explained = explainConnection(policy, 'a.test:443')
    expect(explained.ok && explained.value.verdict).toBe('denied')
    expect(explained.ok && explained.value.fix).toBe('pen forget a.test:443')
  })

  test('P16 a temporary denial does not replace the one in the project’s document', async () => {
    addGrants(project.stateDir, [order('a.test:443', { effect: 'deny', once: true })])
    temporary.write('agent-permissions.json', JSON.stringify({ network: { deny: ['a.test:443'] } }))
    expect(await networkOf()).toEqual({ allow: [], deny: ['a.test:443'], once: [[], ['a.test:443']] })
  })

  test('P11 say who made them and until when', async () => {
    addGrants(project.stateDir, [order('a.test:443', { until: new Date('2999-01-02T03:04:05Z') })])
    const explained = explainConnection((await load('shown')).policy, 'a.test:443')
    expect(explained.ok && explained.value.source?.layer).toBe('pen allow, until 2999-01-02T03:04:05Z')
  })

  test('are removed, together with expired ones', async () => {
    addGrants(project.stateDir, [
      order('a.test:443'),
      order('b.test:443'),
      order('old.test:443', { until: new Date(Date.now() - 1000) }),
    ])
    const gone = await removeGrants(project.stateDir, ({ rule }) => printRule(rule) === 'a.test:443')
    expect(gone.map(({ rule }) => printRule(rule))).toEqual(['a.test:443'])
    expect(grantFiles(project.stateDir)).toHaveLength(1)
  })

  test('P19 are bounded in number, written whole, and readable by the user alone', () => {
    addGrants(
      project.stateDir,
      Array.from({ length: 256 }, (_, i) => order(`h${i}.test:443`)),
    )
    expect(() => addGrants(project.stateDir, [order('one.test:443')])).toThrow('256 temporary grants')
    expect(readdirSync(join(project.stateDir, 'grants'))).toHaveLength(256)
  })

  const damaged: readonly (readonly [what: string, text: string])[] = [
    ['cut off', '{"version":1,'],
    [
      'of a later version',
      '{"version":2,"allow":"a.test:443","by":"pen allow","made":"2026-01-01T00:00:00.000Z","until":"2999-01-01T00:00:00.000Z"}',
    ],
    [
      'without an end',
      '{"version":1,"allow":"a.test:443","by":"pen allow","made":"2026-01-01T00:00:00.000Z"}',
    ],
    [
      'once for a run, without an end',
      `{"version":1,"allow":"a.test:443","by":"pen allow","once":true,"run":"${RUN}","made":"2026-01-01T00:00:00.000Z"}`,
    ],
    [
      'with two rules',
      '{"version":1,"allow":"a.test:443","deny":"b.test","by":"pen allow","made":"2026-01-01T00:00:00.000Z","until":"2999-01-01T00:00:00.000Z"}',
    ],
    [
      'for everything',
      '{"version":1,"allow":"*:443","by":"pen allow","made":"2026-01-01T00:00:00.000Z","until":"2999-01-01T00:00:00.000Z"}',
    ],
    [
      'with more keys',
      '{"version":1,"allow":"a.test:443","x":1,"by":"pen allow","made":"2026-01-01T00:00:00.000Z","until":"2999-01-01T00:00:00.000Z"}',
    ],
  ]
  test.each(damaged)('P19 a file %s stops what would read it', async (_what, text) => {
    addGrants(project.stateDir, [order('good.test:443')])
    writeFileSync(join(project.stateDir, 'grants', newGrantFile(new Date())), text)
    await expect(load()).rejects.toBeInstanceOf(PenError)
  })

  test('P16 a link in the place of one is not followed', async () => {
    addGrants(project.stateDir, [order('good.test:443')])
    const [file = ''] = grantFiles(project.stateDir)
    temporary.write('planted.json', readFileSync(join(project.stateDir, 'grants', file), 'utf8'))
    symlinkSync(
      join(temporary.workspace, 'planted.json'),
      join(project.stateDir, 'grants', newGrantFile(new Date())),
    )
    await expect(load()).rejects.toBeInstanceOf(PenError)
    chmodSync(join(project.stateDir, 'grants'), 0o700)
  })
})
