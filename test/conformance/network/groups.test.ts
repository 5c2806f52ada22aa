/** Groups with verbs, with the real clients: they read and install, and publish or push only where the group says so. */
import { beforeAll, expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { triesOthers } from '../launcher.ts'
import { makeCrates, makeRegistry, makeRepository, makeWheel } from './services.ts'
import { runSteps } from './steps.ts'
import { forEachKind, isReady, World } from './world.ts'

const HOST = 'https://allowed.test'

beforeAll(async () => {
  if (!isReady || triesOthers) return
  const { dir } = await World.get()
  makeRegistry(dir, HOST)
  makeCrates(dir, HOST)
  makeWheel(dir)
  const repository = makeRepository(dir)
  spawnSync('git', ['-C', repository, 'config', 'http.receivepack', 'true'])
}, 30_000)

const SOURCES = `[source.crates-io]\nreplace-with = "ours"\n[source.ours]\nregistry = "${HOST}/git/index.git"\n`

const requests = (lines: readonly string[]): string[] =>
  lines.filter(line => line.startsWith('request')).map(line => line.split(' ').slice(3).join(' '))

const CARGO = '/usr/bin/cargo'
const status = (words: string): string => `curl -s -m 20 -o /dev/null -w '%{http_code}' ${words}`

forEachKind(
  'P6 npm:install, pypi:install and crates:install install with the real clients, and publish nothing',
  async (world, project) => {
    project.write('../.npmrc', `registry=${HOST}/files/npm/\n`)
    project.write('../.config/pip/pip.conf', `[global]\nindex-url = ${HOST}/files/simple\n`)
    project.write('../.cargo/config.toml', SOURCES)
    project.write('Cargo.toml', '[package]\nname = "own"\nversion = "0.1.0"\n[dependencies]\ntiny = "1"\n')
    project.write('src/lib.rs', '')
    project.write('.cargo/config.toml', SOURCES)
    project.write('package.json', '{"name":"own","version":"1.0.0"}')
    const heard = world.listen()
    const { steps } = await runSteps(
      project,
      {
        npm: `npm install --no-audit --no-fund tiny && node -p "require('tiny')"`,
        pip: '/usr/bin/python3 -m pip download -qq --no-deps tiny && ls *.whl',
        cargo: existsSync(CARGO) ? `${CARGO} fetch 2>&1` : 'echo Downloaded',
        publish: 'npm publish --//allowed.test/files/npm/:_authToken=x 2>&1',
        upload: status(`-F file=@package.json ${HOST}/legacy/`),
        crate: status(`-T package.json ${HOST}/api/v1/crates/new`),
        push: status(`-X POST ${HOST}/git/index.git/git-receive-pack`),
      },
      { flags: ['npm', 'pypi', 'crates'].flatMap(name => ['--group', `${name}:install`]) },
    )
    expect(steps.npm.said).toEndWith('tiny works\n')
    expect(steps.pip.said).toBe('tiny-1.0-py3-none-any.whl\n')
    expect([steps.cargo.code, steps.cargo.said]).toEqual([0, expect.stringContaining('Downloaded')])
    expect([steps.publish.code === 0, steps.publish.said]).toEqual([false, expect.stringContaining('E403')])
    expect([steps.upload.said, steps.crate.said, steps.push.said]).toEqual(['403', '403', '403'])
    const other = requests(heard.requests).filter(line => !/^(?:GET|HEAD) /.test(line))
    expect(new Set(other)).toEqual(
      new Set(existsSync(CARGO) ? ['POST allowed.test /git/index.git/git-upload-pack'] : []),
    )
  },
  { users: 'ordinary' },
)

const GIT = 'git -c user.name=a -c user.email=a@example.com'

forEachKind(
  'P6 github:read clones and reads the API, and github:write pushes too, with the real git',
  async (world, project) => {
    const run = async (group: string) => {
      const branch = `${group}-${process.pid}`
      const heard = world.listen()
      const { steps } = await runSteps(
        project,
        {
          clone: `git clone -q https://github.com/git/repo.git /tmp/${group} && cat /tmp/${group}/README`,
          push: `cd /tmp/${group} && git checkout -qb ${branch} && echo x >>README && ${GIT} commit -qam x && git push -q origin ${branch}`,
          read: status('https://api.github.com/repos/a/b'),
          write: status('-X PATCH https://api.github.com/repos/a/b'),
          graphql: status('-X POST https://api.github.com/graphql'),
        },
        { flags: ['--group', `github:${group}`] },
      )
      return { ...steps, asked: requests(heard.requests).join('\n') }
    }
    const read = await run('read')
    expect([read.clone.said, read.read.said]).toEqual(['from the repository\n', '200'])
    expect([read.push.code === 0, read.push.said]).toEqual([false, expect.stringContaining('403')])
    expect([read.write.said, read.graphql.said]).toEqual(['403', '403'])
    expect(read.asked).not.toMatch(/POST .*receive-pack|PATCH|graphql/)
    const write = await run('write')
    expect([write.clone.said, write.push.code, write.push.said]).toEqual(['from the repository\n', 0, ''])
    expect([write.write.said, write.graphql.said]).toEqual(['200', '200'])
    expect(write.asked).toContain('POST github.com /git/repo.git/git-receive-pack')
  },
  { users: 'ordinary' },
)
