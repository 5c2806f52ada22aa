import { describe, expect, test } from 'bun:test'
import { parseConfigKey } from './config-key.ts'

const said = (text: string): string => {
  const key = parseConfigKey(text)
  return key.ok ? `${key.value.path.join('/')} ${key.value.takes}` : `${key.why}; ${key.fix}`
}

describe('a key of the config', () => {
  test.each([
    ['profile', 'profile text'],
    ['limits.memory', 'limits/memory text'],
    ['limits.pids', 'limits/pids number'],
    ['network.offline', 'network/offline boolean'],
    ['network.http', 'network/http texts'],
    ['network.upstreamProxy', 'network/upstreamProxy json'],
    ['network', 'network json'],
    ['mounts', 'mounts json'],
    ['env', 'env json'],
    ['env.AWS_PROFILE', 'env/AWS_PROFILE json'],
    ['image.args.BASE', 'image/args/BASE text'],
  ])('%s is %s', (text, expected) => {
    expect(said(text)).toBe(expected)
  })

  test.each([
    ['limits.memry', 'the config has no key "limits.memry"; did you mean limits.memory?'],
    ['limits', 'limits json'],
    ['limit.memory', 'the config has no key "limit.memory"; did you mean limits?'],
    ['limits.memory.x', 'the config has no key "limits.memory.x"; limits.memory has no keys of its own'],
    ['ssh.zzzzzzzz', 'the config has no key "ssh.zzzzzzzz"; ssh has agent'],
    ['env.', 'the config has no key "env."; env has no keys of its own'],
    ['__proto__', /no key "__proto__"/],
    ['constructor.name', /no key "constructor.name"/],
    ['', /no key ""/],
    ['x\u001b[2J', /no key "x\\u001b\[2J"/],
  ])('%j: %s', (text, expected) => {
    if (typeof expected === 'string') expect(said(text)).toBe(expected)
    else expect(said(text)).toMatch(expected)
  })
})
