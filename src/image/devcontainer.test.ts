import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { withoutComments } from '../config/json/comments.ts'
import { type JsonObject, readJson } from '../config/json/json.ts'
import { readDevcontainer } from './devcontainer.ts'

const read = (text: string, file = '/p/.devcontainer/devcontainer.json') =>
  readDevcontainer(readJson(Buffer.from(withoutComments(text)), file).value as JsonObject, file, '/p')

test('image, plain packages, user, variables and ports become a config; the rest is listed with a reason', () => {
  const { config, left, setup } = read(`// a comment
{
  "name": "app", /* { */
  "image": "mcr.microsoft.com/devcontainers/base:bookworm",
  "features": {
    "ghcr.io/devcontainers/features/github-cli:1": {},
    "ghcr.io/devcontainers/features/node:1": { "version": "22.11.0" },
    "ghcr.io/devcontainers/features/python:1": { "version": "3.9" },
    "ghcr.io/rocker-org/devcontainer-features/apt-packages:1": { "packages": "jq, ripgrep" },
    "ghcr.io/devcontainers/features/docker-in-docker:2": {},
  },
  "remoteUser": "vscode",
  "containerEnv": {
    "A": "// no comment",
    "ROOT": "\${containerWorkspaceFolder}/x",
    "LANG": "\${localEnv:LANG}",
    "OTHER": "\${localEnv:HOME}",
    "NPM_TOKEN": "\${localEnv:NPM_TOKEN}",
  },
  "forwardPorts": [3000, "localhost:5173", "db:5432", 0, 3000],
  "postCreateCommand": { "a": "npm ci", "b": ["echo", "it's"] },
  "initializeCommand": "id",
  "runArgs": ["--privileged"],
  "strange": 1,
}`)
  expect(config).toEqual({
    image: {
      args: {
        BASE: 'mcr.microsoft.com/devcontainers/base:bookworm',
        NODE: '22.11.0',
        PACKAGES: expect.stringMatching(/^ca-certificates .* gh jq ripgrep$/),
      },
    },
    env: { A: '// no comment', ROOT: '/p/x', LANG: { from: 'host' } },
    ports: [
      { guest: 3000, host: 3000 },
      { guest: 5173, host: 5173 },
    ],
  })
  expect(setup).toEqual(['npm ci', `echo 'it'"'"'s'`])
  expect(left.map(({ what }) => what)).toEqual([
    'features: ghcr.io/devcontainers/features/python:1',
    'features: ghcr.io/devcontainers/features/docker-in-docker:2',
    'containerEnv.OTHER',
    'containerEnv.NPM_TOKEN',
    'forwardPorts: db:5432',
    'forwardPorts: 0',
    'initializeCommand',
    'runArgs',
    'strange',
  ])
})

test('a Dockerfile and its context are taken inside the project, and not outside', () => {
  const { config } = read(
    '{"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"V": "1"}}, "remoteUser": "1000:1000"}',
  )
  expect(config).toEqual({
    image: { dockerfile: '.devcontainer/Dockerfile', context: '.', args: { V: '1' } },
    user: '1000:1000',
  })
  expect(read('{"dockerFile": "../Dockerfile"}', '/p/.devcontainer.json').config).toEqual({})
  const out = read('{"build": {"dockerfile": "../../etc/passwd", "target": "x"}}')
  expect([out.config, out.left.map(({ what }) => what)]).toEqual([{}, ['build.target', 'build']])
})

test('no value is taken unchecked, whatever its type', () => {
  const key = fc.constantFrom(
    'image',
    'build',
    'dockerFile',
    'features',
    'containerEnv',
    'forwardPorts',
    'remoteUser',
  )
  fc.assert(
    fc.property(fc.dictionary(key, fc.jsonValue()), document => {
      const { config } = readDevcontainer(document as JsonObject, '/p/.devcontainer.json', '/p')
      expect(JSON.stringify(config)).not.toMatch(/"\.\.\/|\\u0000/)
    }),
  )
})

test('comments and trailing commas become spaces, and strings stay', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom('/* , ] */', '// "}\n', ' '), (value, comment) => {
      const text = JSON.stringify([value])
      const commented = `${comment}[${comment}${text.slice(1, -1)}${comment},${comment}]${comment}`
      expect(JSON.parse(withoutComments(commented))).toEqual(JSON.parse(text))
      expect(withoutComments(commented)).toHaveLength(commented.length)
      expect(withoutComments(text)).toBe(text)
    }),
  )
})
