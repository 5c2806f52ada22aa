import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { chmodSync, rmSync, symlinkSync } from 'node:fs'
import { type TemporaryProject, temporaryProject, withHome } from '../../test/temporary-project.ts'
import type { AuditEventInput } from '../audit/event.ts'
import { addGrants, type GrantOrder, readGrants } from '../config/grants/network-grants.ts'
import { type LoadOptions, loadPolicy } from '../config/load.ts'
import { findProject } from '../config/project.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { liveState } from './live-files.ts'
import { LivePolicy } from './live-policy.ts'

const RUN = '20260102-030405-1a2b3c'
const LOAD: LoadOptions = { flags: {}, allowUserExpansion: false, offline: false }
const config = (network: object): string => JSON.stringify({ version: 1, network })

let project: TemporaryProject
let live: LivePolicy | undefined
const audit: AuditEventInput[] = []
let allowed: string[] = []
const lines: string[] = []
const failures: unknown[] = []

beforeEach(() => {
  project = temporaryProject()
  for (const list of [audit, lines, failures]) list.length = 0
})
afterEach(async () => {
  await live?.stop()
  project[Symbol.dispose]()
})

/** As a run does it; `meanwhile` is what happens before anybody watches. */
async function watch(meanwhile: () => void = () => undefined): Promise<LivePolicy> {
  const found = await withHome(project.home, async () => findProject(project.workspace))
  const seen = liveState(found.stateDir)
  const loaded = await loadPolicy(found, LOAD)
  const rules = (network: typeof loaded.policy.network) => network.allow.map(({ rule }) => printRule(rule))
  allowed = rules(loaded.policy.network)
  meanwhile()
  live = new LivePolicy({
    loaded,
    seen,
    load: LOAD,
    run: RUN,
    audit: { record: event => audit.push(event) },
    change: network => {
      allowed = rules(network)
      return 0
    },
    tell: line => lines.push(line),
    fail: error => failures.push(error),
  })
  return live
}

describe('the live policy', () => {
  test('P16 an edit between the reading of the config and the start of the sandbox is not lost', async () => {
    project.writeLive('config.json', config({ http: ['a.test', 'b.test'] }))
    const watching = await watch(() => project.writeLive('config.json', config({ http: ['a.test'] })))
    expect(allowed).toEqual(['a.test:443', 'b.test:443'])
    await watching.check()
    expect(allowed).toEqual(['a.test:443'])
  })

  test('without an edit nothing is read again, and nothing recorded', async () => {
    project.writeLive('config.json', config({ http: ['a.test'] }))
    const watching = await watch()
    await watching.check()
    expect([audit, lines, failures]).toEqual([[], [], []])
  })

  test('P18 what was denied is in the record too', async () => {
    project.writeLive('config.json', config({ http: ['a.test'] }))
    const watching = await watch()
    project.writeLive('config.json', config({ http: ['a.test'], deny: ['evil.test'] }))
    await watching.check()
    expect(audit).toEqual([{ kind: 'policy-changed', added: ['deny evil.test'], removed: [] }])
  })

  const oddities: Readonly<Record<string, (path: string) => void>> = {
    'a link to itself': path => symlinkSync(path, path),
    'a link to elsewhere': path => symlinkSync('/etc/hostname', path),
    'a pipe': path => void spawnSync('mkfifo', [path]),
    'a file of three gigabytes': path => void spawnSync('truncate', ['-s', '3G', path]),
    'a file that others may write': path => {
      project.writeLive('config.json', config({ http: ['evil.test'] }))
      chmodSync(path, 0o666)
    },
  }
  for (const [what, make] of Object.entries(oddities))
    test(`P16 ${what} in its place keeps the old policy in force, and is reported`, async () => {
      project.writeLive('config.json', config({ http: ['a.test'] }))
      const watching = await watch()
      const path = `${project.stateDir}/config.json`
      rmSync(path)
      make(path)
      await watching.check()
      expect([allowed, failures]).toEqual([['a.test:443'], []])
      expect(audit.map(event => event.kind)).toEqual(['policy-edit-refused'])
      expect(lines.length).toBe(1)
    })

  test('no config at all is an edit that takes everything away', async () => {
    project.writeLive('config.json', config({ http: ['a.test'] }))
    const watching = await watch()
    rmSync(`${project.stateDir}/config.json`)
    await watching.check()
    expect(allowed).toEqual([])
  })
})

describe('temporary grants', () => {
  const grant = (host: string, more: Partial<GrantOrder>): GrantOrder => ({
    effect: 'allow',
    rule: { kind: 'name', host: host as never, port: 443 as never },
    by: 'pen allow',
    once: false,
    run: undefined,
    until: new Date(Date.now() + 3_600_000),
    ...more,
  })
  const within = async (holds: () => boolean) => {
    for (const late = performance.now() + 3000; !holds(); await Bun.sleep(2))
      if (performance.now() > late) throw new Error(`never: ${allowed}`)
  }

  test('P6 end by the clock, with a record, also while the config is broken', async () => {
    project.writeLive('config.json', config({ http: ['a.test'] }))
    await watch()
    addGrants(project.stateDir, [grant('b.test', { until: new Date(Date.now() + 700) })])
    await within(() => allowed.includes('b.test:443'))
    project.writeLive('config.json', '{ broken')
    await within(() => !allowed.includes('b.test:443'))
    expect(allowed).toEqual(['a.test:443'])
    expect(audit.filter(({ kind }) => kind === 'policy-changed')).toMatchObject([
      { added: ['b.test:443'], removed: [] },
      { added: [], removed: ['b.test:443'], reason: 'expired' },
    ])
  })

  test('P16 of a session end with it, and those of others stay', async () => {
    const watching = await watch()
    addGrants(project.stateDir, [
      grant('mine.test', { run: RUN, until: undefined }),
      grant('others.test', { run: '20260102-030405-ffffff', until: undefined }),
    ])
    await within(() => allowed.length > 0)
    expect(allowed).toEqual(['mine.test:443'])
    await watching.stop()
    expect((await readGrants(project.stateDir)).map(({ rule }) => printRule(rule))).toEqual([
      'others.test:443',
    ])
  })
})
