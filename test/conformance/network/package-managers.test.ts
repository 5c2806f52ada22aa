/** Package managers report a refusal in words of their own, such as "no version found": pen says which host it was. */
import { beforeAll, expect } from 'bun:test'
import { BACKGROUND_HOSTS } from '../../../src/policy/network/background-hosts.ts'
import { triesOthers } from '../launcher.ts'
import { makeCrates, makeRegistry } from './services.ts'
import { forEachKind, isReady, World } from './world.ts'

beforeAll(async () => {
  if (!isReady || triesOthers) return
  const { dir } = await World.get()
  makeRegistry(dir, 'http://allowed.test')
  makeCrates(dir, 'https://allowed.test')
}, 30_000)

const PACKAGES = 'packages.test'
/** Two, as agents call them beside their work. */
const QUIET = [...BACKGROUND_HOSTS].slice(0, 2)
const beside = QUIET.map(host => `curl -sS https://${host}/ 2>/dev/null;`).join(' ')

const MANAGERS = [
  {
    name: 'npm',
    env: (url: string) => `npm_config_registry=${url}/`,
    ask: 'npm view tiny version --fetch-retries=1',
  },
  {
    name: 'pip',
    env: (url: string) => `PIP_INDEX_URL=${url}/simple`,
    ask: '/usr/bin/python3 -m pip download --disable-pip-version-check --retries 1 tiny',
  },
]

for (const { name, env, ask } of MANAGERS)
  forEachKind(
    `P11 after a refused ${name} the user reads which host it was, and background calls in one line after it`,
    async (world, project) => {
      const heard = world.listen()
      const run = ['run', '--env', env(`https://${PACKAGES}`), '--', 'sh', '-c', `${beside} ${ask}`]
      const { status, stderr } = project.command(run)
      expect(status).not.toBe(0)
      const lines = stderr.split('\n').filter(line => line.startsWith('pen: refused'))
      expect(lines).toEqual([
        expect.stringMatching(
          /^pen: refused: packages\.test:443(?: \(\d+ times\))?; to allow it: pen allow packages\.test:443$/,
        ),
        `pen: refused quietly: 2 calls to ${QUIET.join(', ')} (reports and update checks); pen logs --all lists them`,
      ])
      expect(heard.names).not.toContain(PACKAGES)
      for (const host of QUIET) expect(heard.names).not.toContain(host)
    },
    { users: 'ordinary' },
  )

forEachKind(
  'P11 an npm whose registry is allowed ends without a word of pen’s',
  async (_, project) => {
    const url = 'http://allowed.test/files/npm'
    const run = ['run', '--allow', 'allowed.test:80', '--env', `npm_config_registry=${url}/`, '--']
    const { status, stdout, stderr } = project.command([...run, 'npm', 'view', 'tiny', 'version'])
    expect([status, stdout]).toEqual([0, '1.0.0\n'])
    expect(stderr).not.toContain('pen: refused')
  },
  { users: 'ordinary' },
)

/** Debian's, which gets the index by libgit2 and crates by libcurl. */
const CARGO = '/usr/bin/cargo'
const SOURCES =
  '[source.crates-io]\nreplace-with = "ours"\n[source.ours]\nregistry = "https://allowed.test/git/index.git"\n'

forEachKind(
  'P22 cargo trusts pen’s authority without any setting, and its requests are judged one by one',
  async (world, project) => {
    project.write('Cargo.toml', '[package]\nname = "own"\nversion = "0.1.0"\n[dependencies]\ntiny = "1"\n')
    project.write('src/lib.rs', '')
    project.write('.cargo/config.toml', SOURCES)
    const index = ['GET allowed.test/git/index.git/**', 'POST allowed.test/git/index.git/git-upload-pack']
    const fetch = (allow: readonly string[]) => project.run(`${CARGO} fetch 2>&1`, { allow })
    const refused = await fetch(index)
    expect([refused.code, refused.err]).toEqual([
      101,
      expect.stringContaining('GET allowed.test:443/files/crates'),
    ])
    const heard = world.listen()
    const fetched = await fetch([...index, 'GET allowed.test/files/crates/**'])
    expect([fetched.code, fetched.out]).toEqual([0, expect.stringContaining('Downloaded tiny v1.0.0')])
    const paths = heard.requests.map(line => line.split(' ').slice(3).join(' '))
    expect(paths).toContain('POST allowed.test /git/index.git/git-upload-pack')
    expect(paths).toContain('GET allowed.test /files/crates/tiny/1.0.0/download')
  },
  { needs: CARGO, users: 'ordinary' },
)
