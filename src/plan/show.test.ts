import { describe, expect, test } from 'bun:test'
import { ABLE } from '../../test/arbitrary/capabilities.ts'
import { PATHS } from '../../test/arbitrary/layer.ts'
import { mergedOf, policyOf } from '../../test/arbitrary/policy.ts'
import { factsFor } from '../../test/arbitrary/tree-model.ts'
import type { GuestPath } from '../policy/files/path.ts'
import { buildPlan } from './build.ts'
import { planData, policyData, redactUrl } from './data.ts'
import type { Capabilities } from './gaps.ts'
import { planText, projectDocument, showExpansion } from './show.ts'

const caps: Capabilities = { ...ABLE, bridge: false, listedExec: false }

function shown(user: object, agent?: object, env: Readonly<Record<string, string>> = {}) {
  const policy = policyOf(user, agent)
  const facts = factsFor(policy, PATHS, { env: new Map(Object.entries(env)) })
  const plan = buildPlan(policy, facts, caps, { argv: ['npm', 'test'], cwd: '/h/u/ws' as GuestPath })
  const json = JSON.stringify({ policy: policyData(policy), plan: planData(plan) })
  return { text: planText(policy, plan, mergedOf(user, agent)), json }
}

describe('a printed plan', () => {
  test('holds no secret: not of the environment, a proxy address or a build argument', () => {
    const { text, json } = shown(
      {
        env: { API_KEY: 'canary-1', PASSED: { from: 'host' } },
        network: {
          upstreamProxy: 'http://user:canary-2@proxy.example.com:3128/canary-3?t=canary-4#canary-5',
        },
        image: { dockerfile: 'Dockerfile', args: { TOKEN: 'canary-6' } },
      },
      undefined,
      { PASSED: 'canary-7' },
    )
    for (const out of [text, json]) {
      expect(out).not.toContain('canary')
      for (const name of ['API_KEY', 'PASSED', 'proxy.example.com:3128']) expect(out).toContain(name)
    }
  })

  test('says where each part came from', () => {
    const { text } = shown({ network: { http: ['a.test'] }, limits: { pids: 7 } })
    expect(text).toMatch(/a\.test:443 +live config/)
    expect(text).toMatch(/pids 7 +live config/)
    expect(text).toMatch(/memory 4GiB +profile coding/)
  })

  test('names every gap, and whether it is accepted', () => {
    const gap = { tools: { exec: 'listed' } }
    expect(shown(gap).text).toContain('gaps:\n  exec-unlisted: ')
    expect(shown({ ...gap, acceptGaps: ['exec-unlisted'] }).text).toContain('(accepted)')
    expect(shown({}).text).toContain('gaps: none')
  })

  test('escapes hostile names: a path cannot draw on the terminal or forge a line', () => {
    const policy = policyOf({})
    const facts = factsFor(policy, PATHS, {
      denied: [{ path: '/h/u/ws/\u001b[2Jgaps: none\n', kind: 'file', why: 'x' }],
    })
    const plan = buildPlan(policy, facts, caps, { argv: ['a\nb'], cwd: '/h/u/ws' as GuestPath })
    const text = planText(policy, plan, mergedOf({}))
    expect(text).not.toContain('\u001b')
    expect(text.split('\n').filter(line => line.startsWith('gaps:'))).toEqual(['gaps: none'])
  })
})

describe('what the project’s document did', () => {
  test('is said in one word', () => {
    expect(projectDocument(mergedOf({}))).toBe('absent')
    expect(projectDocument(mergedOf({}, { limits: { pids: 1 } }))).toBe('restricted')
    expect(projectDocument(mergedOf({}, { limits: { pids: 1 } }, true))).toBe('restricted')
    expect(projectDocument(mergedOf({}, { limits: { pids: 8192 } }, true))).toBe('expanded')
  })

  test('is listed grant by grant', () => {
    const added = {
      network: { http: ['a.test'] },
      files: { write: ['a'] },
      env: { A: 'canary' },
      profile: 'dev',
    }
    expect(mergedOf({ profile: 'strict' }, added, true).expanded.map(showExpansion)).toEqual(
      expect.arrayContaining([
        'agent-permissions.json: profile dev',
        'agent-permissions.json: files.write /h/u/ws/a',
        'agent-permissions.json: network.http a.test:443',
        'agent-permissions.json: env A',
      ]),
    )
  })
})

describe('an address that is shown', () => {
  test.each([
    ['http://proxy.example.com:3128', 'http://proxy.example.com:3128'],
    ['http://u:p@proxy.example.com', 'http://<redacted>@proxy.example.com'],
    ['http://token@proxy.example.com/path?key=1#x', 'http://<redacted>@proxy.example.com'],
    ['no address: secret', '<redacted>'],
  ])('%s is shown as %s', (url, text) => {
    expect(redactUrl(url)).toBe(text)
  })
})
