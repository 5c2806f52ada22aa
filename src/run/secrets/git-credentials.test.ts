import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { indexOf } from '../../../test/gateway/world.ts'
import { gitCredentials } from './git-credentials.ts'

const to = ['a.example.com:443', '*.example.org:443', 'host.pen.internal:8443', 'http://plain.example.com:80']
const secrets = [{ name: 'TOKEN', to }]
const variables = gitCredentials(indexOf(secrets).secrets.map(({ rule }) => rule))

function passwordFor(url: string): string | undefined {
  const env = Object.fromEntries(variables.map(({ name, value }) => [name, value]))
  const { stdout } = spawnSync('git', ['credential', 'fill'], {
    input: `url=${url}\n\n`,
    encoding: 'utf8',
    env: {
      PATH: '/usr/bin:/bin',
      HOME: '/nonexistent',
      GIT_TERMINAL_PROMPT: '0',
      TOKEN: 'placeholder',
      ...env,
    },
  })
  return /^password=(.*)$/m.exec(stdout)?.[1]
}

test.each(['https://a.example.com', 'https://b.example.org', 'https://host.pen.internal:8443/r.git'])(
  'git gets the placeholder for a host of the secret: %s',
  url => {
    expect(passwordFor(url)).toBe('placeholder')
  },
)

test.each([
  'https://a.example.com:8443',
  'https://b.example.com',
  'https://host.pen.internal',
  'http://plain.example.com',
  'http://a.example.com',
])('git gets none for another host, port or protocol: %s', url => {
  expect(passwordFor(url)).toBeUndefined()
})
