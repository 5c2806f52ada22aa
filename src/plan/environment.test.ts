import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../test/arbitrary/policy.ts'
import { factsFor } from '../../test/arbitrary/tree-model.ts'
import type { HostPath } from '../policy/files/path.ts'
import { buildEnvironment, unsetVariables } from './environment.ts'

function environment(value: object, host: Readonly<Record<string, string>> = {}) {
  const policy = policyOf(value)
  return new Map(
    buildEnvironment(policy, factsFor(policy, [], { env: new Map(Object.entries(host)) })).map(variable => [
      variable.name,
      variable,
    ]),
  )
}

describe('the environment inside', () => {
  test('is the sandbox’s own', () => {
    const env = environment({})
    expect([env.get('HOME')?.value, env.get('TMPDIR')?.value, env.get('USER')?.value]).toEqual([
      '/home/agent',
      '/tmp',
      'agent',
    ])
    expect(env.get('AGENT_IN_SANDBOX')?.value).toBe('1')
  })

  test.each([
    'AWS_SECRET_ACCESS_KEY',
    'GITHUB_TOKEN',
    'SSH_AUTH_SOCK',
    'DBUS_SESSION_BUS_ADDRESS',
    'XDG_RUNTIME_DIR',
    'npm_config_registry',
    'HTTP_PROXY',
    'https_proxy',
    'ALL_PROXY',
    'LD_PRELOAD',
    'NODE_OPTIONS',
    'BASH_ENV',
    'DISPLAY',
  ])('has nothing of the host’s %s, unless the policy names it', name => {
    expect(environment({}, { [name]: 'canary' }).has(name)).toBe(false)
    expect(environment({ env: { [name]: { from: 'host' } } }, { [name]: 'canary' }).get(name)?.value).toBe(
      'canary',
    )
  })

  test('a passed variable that the host lacks is reported; one that is set is not', () => {
    const policy = policyOf({ env: { HAVE: { from: 'host' }, LACK: { from: 'host' }, TEXT: 'x' } })
    const facts = factsFor(policy, [], { env: new Map([['HAVE', '']]) })
    expect(unsetVariables(policy, facts)).toEqual([
      'LACK is passed on by live config, and is not set here; fix: export LACK=…',
    ])
  })

  test('lets npm try again soon, unless the policy says otherwise', () => {
    const name = 'npm_config_fetch_retry_mintimeout'
    expect(environment({}).get(name)?.value).toBe('1000')
    expect(environment({ env: { [name]: '10000' } }).get(name)?.value).toBe('10000')
  })

  test('passes the locale and terminal variables', () => {
    const env = environment({}, { TERM: 'xterm-256color', LANG: 'de_DE.UTF-8', TZ: 'Europe/Berlin' })
    expect(['TERM', 'LANG', 'TZ'].map(name => env.get(name)?.value)).toEqual([
      'xterm-256color',
      'de_DE.UTF-8',
      'Europe/Berlin',
    ])
  })

  test('drops a value that is more than a name', () => {
    for (const value of ['x\u001b[2J', '../../etc', 'a b', '$(id)', 'x'.repeat(200), ':/etc/../x'])
      expect(environment({}, { TZ: value, TERM: value }).has('TZ')).toBe(false)
  })

  test.each(['gateway', 'none', 'bridge'])('has no variable of a secret, in the mode %s', mode => {
    const to = ['api.example.com:443']
    const secrets = [
      { name: 'FOO_KEY', from: { env: 'FOO_KEY' }, to },
      { name: 'BAR_KEY', from: { env: 'OF_HOST' }, to },
    ]
    const passed = { FOO_KEY: { from: 'host' }, BAR_KEY: 'canary', OF_HOST: { from: 'host' }, OTHER: 'x' }
    const host = { FOO_KEY: 'canary', OF_HOST: 'canary' }
    const env = environment({ network: { mode }, secrets, env: passed }, host)
    expect([...env.values()].filter(({ value }) => value === 'canary')).toEqual([])
    expect(env.get('OTHER')?.value).toBe('x')
  })

  test('treats a variable that the host lacks as absent, not as empty', () => {
    expect(environment({ env: { NOT_THERE: { from: 'host' } } }).has('NOT_THERE')).toBe(false)
    expect(environment({ env: { EMPTY: { from: 'host' } } }, { EMPTY: '' }).get('EMPTY')?.value).toBe('')
  })

  test('names the host’s certificate authorities, in an image by the place where it has them', () => {
    const of = (image: boolean) => {
      const policy = policyOf({})
      const facts = { ...factsFor(policy, []), authorities: '/etc/ssl/certs/ca-certificates.crt' as HostPath }
      return new Map(buildEnvironment(policy, facts, image).map(({ name, value }) => [name, value]))
    }
    expect(of(false).get('NODE_EXTRA_CA_CERTS')).toBe('/etc/ssl/certs/ca-certificates.crt')
    expect(of(false).has('SSL_CERT_FILE')).toBe(false)
    for (const name of ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'GIT_SSL_CAINFO'])
      expect(of(true).get(name)).toBe('/etc/pen/ca-certificates.crt')
    expect(environment({}).has('NODE_EXTRA_CA_CERTS')).toBe(false)
  })

  test('shows preferences that the policy sets, unless they look like a token', () => {
    const env = environment(
      {
        env: {
          EDITOR: 'vim',
          LANG: 'de_DE.UTF-8',
          PATH: 'ghp_0123456789abcdefghijklmnopqrstuvwx',
          TZ: { from: 'host' },
        },
      },
      { TZ: 'Europe/Berlin' },
    )
    for (const name of ['EDITOR', 'LANG', 'TZ']) expect([name, env.get(name)?.secret]).toEqual([name, false])
    expect(env.get('PATH')?.secret).toBe(true)
  })

  test('counts every other value that the policy sets as a secret', () => {
    const env = environment({ env: { A: 'canary' } })
    expect(env.get('A')).toEqual({ name: 'A', value: 'canary', secret: true })
    expect(env.get('HOME')?.secret).toBe(false)
  })

  test('keeps the variables that mark a sandbox, whatever the policy sets', () => {
    expect(environment({ env: { HOME: '/elsewhere' } }).get('HOME')?.value).toBe('/elsewhere')
    expect(environment({ env: { HOME: '/elsewhere' } }).get('AGENT_IN_SANDBOX')?.value).toBe('1')
  })
})
