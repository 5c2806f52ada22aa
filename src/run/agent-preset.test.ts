import { expect, test } from 'bun:test'
import { policyOf } from '../../test/gateway/world.ts'
import { parseAllowRule } from '../policy/network/endpoint.ts'
import { compileNetwork } from '../policy/network/network.ts'
import { PRESETS } from '../policy/presets.ts'
import { addressWords, keysKeptBack, whyNotReached } from './agent-preset.ts'

const indexOf = (...rules: readonly string[]) =>
  compileNetwork({
    mode: 'gateway',
    offline: false,
    allow: rules.map(text => {
      const rule = parseAllowRule(text, () => false)
      if (!rule.ok) throw new Error(text)
      return { rule: rule.value, source: { layer: 'test', place: undefined } }
    }),
    deny: [],
    mirrors: [],
  })

const why = (value: string, ...rules: readonly string[]) =>
  whyNotReached('ANTHROPIC_BASE_URL', value, PRESETS['claude-code'], indexOf(...rules))

test('an address that the policy opens is not complained about, and another one is, with the flag that opens it', () => {
  expect(why('https://llm.example.com/v1', 'llm.example.com:443')).toBeUndefined()
  expect(why('http://host.pen.internal:4000', 'host.pen.internal:4000')).toBeUndefined()
  expect(why('https://203.0.113.7:8443', '203.0.113.7:8443')).toBeUndefined()
  expect(why('https://llm.example.com:8443/v1', 'llm.example.com:443')).toEndWith(
    '--allow llm.example.com:8443',
  )
})

test('an address on loopback is explained as the sandbox’s own', () => {
  for (const url of ['http://127.0.0.1:11434', 'http://localhost:11434', 'http://[::1]:11434'])
    expect(why(url)).toContain('--allow host.pen.internal:11434')
})

test('of an address only host and port are shown', () => {
  const reason = why('https://user:hunter2@llm.example.com/path?key=hunter3') ?? ''
  expect(reason).toContain('llm.example.com:443')
  expect(reason).not.toMatch(/hunter|user|path/)
  expect(why('not an address')).toBe('ANTHROPIC_BASE_URL holds no http or https address')
})

test('Codex takes the address as a setting on its command line, unless it holds a credential', () => {
  const words = (OPENAI_BASE_URL: string) => addressWords(PRESETS.codex, { OPENAI_BASE_URL })
  expect(words('https://llm.example.com/v1')).toEqual(['-c', 'openai_base_url="https://llm.example.com/v1"'])
  expect(words('https://a:b@llm.example.com/v1')).toEqual([])
  expect(words('https://llm.example.com/v1?key=1')).toEqual([])
  expect(words('"; x')).toEqual([])
  expect(addressWords(PRESETS.codex, {})).toEqual([])
  expect(addressWords(PRESETS['claude-code'], { ANTHROPIC_BASE_URL: 'https://a.example' })).toEqual([])
  const reason = whyNotReached('OPENAI_BASE_URL', 'https://a:b@llm.example.com', PRESETS.codex, indexOf())
  expect(reason).toContain('openai_base_url')
  expect(reason).not.toContain('a:b')
})

test('a key does not go to an address in the environment, until the user says so', () => {
  const kept = (address: string, ...to: readonly string[]) =>
    keysKeptBack('ANTHROPIC_BASE_URL', address, PRESETS['claude-code'], {
      network: policyOf({ secrets: [{ name: 'ANTHROPIC_API_KEY', to: ['api.anthropic.com:443', ...to] }] }),
    })
  expect(kept('https://api.anthropic.com/v1')).toEqual([])
  expect(kept('http://localhost:4000')).toEqual([])
  expect(kept('https://llm.example.com/v1')).toEqual([
    'ANTHROPIC_API_KEY does not go to the address in ANTHROPIC_BASE_URL: pen secret add ANTHROPIC_API_KEY --env ANTHROPIC_API_KEY --to llm.example.com:443 --header x-api-key --header authorization',
  ])
  expect(kept('https://llm.example.com/v1', 'llm.example.com:443')).toEqual([])
  // Without TLS only by name, also at the host of the preset.
  expect(kept('http://api.anthropic.com:443')[0]).toContain('--to http://api.anthropic.com:443 ')
  expect(kept('http://host.pen.internal:4000')[0]).toContain('--to http://host.pen.internal:4000 ')
  expect(kept('http://host.pen.internal:4000', 'http://host.pen.internal:4000')).toEqual([])
})
