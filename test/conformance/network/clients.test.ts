/** Real programs that know nothing of pen: what is allowed works, what is refused fails at once with the reason. */
import { beforeAll, expect } from 'bun:test'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { triesOthers } from '../launcher.ts'
import type { AuditLine } from './project.ts'
import { makeRegistry, makeRepository, startPostgres, startSshd } from './services.ts'
import { runSteps } from './steps.ts'
import { forEachKind, isReady, World } from './world.ts'
import { EVIL, UP } from './zones.ts'

const ALLOW = [
  ...['allowed.test:80', 'allowed.test:443', 'allowed.test:22', 'allowed.test:7', 'six.test:443'],
  ...[`${UP}:5432`, `${UP}:7`],
]
/** Long enough for a slow program to start, far too short for a timeout. */
const AT_ONCE_MS = 1000
const JAVA = ['/usr/bin/javac', '/usr/bin/java']

let bare = ''

beforeAll(async () => {
  if (!isReady || triesOthers) return
  const world = await World.get()
  bare = makeRepository(world.dir)
  makeRegistry(world.dir, 'http://allowed.test')
  await Promise.all([startSshd(world), startPostgres(world)])
}, 30_000)

const node = (url: string) =>
  `node -e "fetch('${url}').then(async r => console.log(r.status, await r.text()), e => { console.log(e.cause.code); process.exit(1) })"`
const python = (url: string) =>
  `/usr/bin/python3 -c "import urllib.request as u; print(u.urlopen('${url}').read().decode())" 2>&1 | tail -1; exit \${PIPESTATUS[0]}`
const raw = (host: string, port: number) => `/usr/bin/python3 -c "
import socket
s = socket.create_connection(('${host}', ${port}), 5)
print(s.recv(100).decode())
s.send(b'ping\\n')
print(s.recv(100).decode())"`

const denials = (audit: readonly AuditLine[]) =>
  audit
    .filter(({ kind }) => kind === 'connection-denied')
    .map(({ name, address, port, reason, fix }) => `${name ?? address} ${port} ${reason} ${fix}`)

forEachKind(
  'P6 curl, wget, Node, Python, git and raw sockets reach what is allowed without any setting',
  async (world, project) => {
    const heard = world.listen()
    const { steps, audit } = await runSteps(
      project,
      {
        curl: 'curl -sS http://allowed.test/',
        curlTls: 'curl -sS https://allowed.test/',
        curlSix: 'curl -sS https://six.test/',
        wget: 'wget -qO- https://allowed.test/',
        node: node('http://allowed.test/'),
        nodeTls: `NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt ${node('https://allowed.test/')}`,
        python: python('https://allowed.test/'),
        proxy: 'curl -sS -x "$PEN_PROXY" https://allowed.test/',
        raw: raw('allowed.test', 7),
        rawAddress: raw(UP, 7),
        git: 'git clone -q https://allowed.test/files/git/repo.git cloned && cat cloned/README',
      },
      { allow: ALLOW },
    )
    for (const name of ['curl', 'curlTls', 'wget', 'node', 'nodeTls', 'proxy'] as const)
      expect([name, steps[name].said]).toEqual([name, expect.stringContaining(`hello from ${UP}`)])
    expect(steps.curlSix.said).toBe('hello from 2600:beef::10 443\n')
    for (const name of ['raw', 'rawAddress'] as const)
      expect(steps[name].said).toBe(`welcome to ${UP} 7\n\nping\n\n`)
    expect(steps.git.said).toBe('from the repository\n')
    expect(Object.values(steps).map(({ code }) => code)).toEqual(Object.keys(steps).map(() => 0))
    // Every connection that left has its record, and nothing else left.
    const allowed = audit.filter(({ kind }) => kind === 'connection-allowed')
    expect(heard.left.length).toBe(allowed.length)
    expect(denials(audit)).toEqual([])
  },
)

forEachKind(
  'P11 curl, wget, Node, Python, git and raw sockets are refused at once, with one record each',
  async (world, project) => {
    const heard = world.listen()
    const { steps, audit, err } = await runSteps(
      project,
      {
        curl: 'curl -sSi http://evil.test/',
        curlTls: 'curl -sS https://evil.test/',
        curlPort: 'curl -sSi http://allowed.test:8080/',
        curlAddress: `curl -sSi http://${EVIL}/`,
        curlSix: 'curl -sS "https://[2600:beef::66]/"',
        wget: 'wget -O- http://evil.test/',
        wgetTls: 'wget -O- https://evil.test/',
        node: node('http://evil.test/'),
        nodeTls: node('https://evil.test/'),
        python: python('http://evil.test/'),
        pythonTls: python('https://evil.test/'),
        raw: raw('evil.test', 7),
        rawAddress: raw(EVIL, 7),
        git: 'git clone -q https://evil.test/files/git/repo.git stolen',
        gitSsh: 'git clone -q ssh://root@evil.test/repo stolen',
        proxy: 'curl -sSi -x "$PEN_PROXY" http://evil.test/',
        proxyTls: 'curl -sS -x "$PEN_PROXY" https://evil.test/',
        npm: 'npm view --no-update-notifier --registry http://evil.test/ tiny',
      },
      { allow: ALLOW },
    )
    const fix = 'pen allow evil.test:80'
    for (const name of ['curl', 'proxy'] as const) {
      expect(steps[name].said).toStartWith('HTTP/1.1 403 ')
      expect(steps[name].said).toContain('x-pen-denied: not-allowed\r\n')
      expect(steps[name].said).toContain(fix)
      expect(steps[name].said).toContain('Do not retry')
    }
    expect(steps.node.said).toContain(fix)
    expect(steps.curlPort.said).toContain('pen allow allowed.test:8080')
    expect(steps.curlAddress.said).toContain(`pen allow ${EVIL}:80`)
    for (const name of ['curlTls', 'curlSix', 'pythonTls', 'wgetTls', 'nodeTls', 'git'] as const)
      expect([name, steps[name].said]).toEqual([name, expect.stringMatching(/access.(was )?denied/i)])
    for (const name of ['raw', 'rawAddress'] as const)
      expect([name, steps[name].said]).toEqual([name, expect.stringContaining('reset by peer')])
    expect(steps.gitSsh.said).toContain('pen allow evil.test:22 (not-allowed)')
    expect(steps.wget.said).toContain('403 Forbidden')
    expect(steps.python.said).toContain('403: Forbidden')
    expect(steps.proxyTls.said).toContain('403')
    expect(steps.npm.said).toContain('403 Forbidden')
    for (const [name, { ms }] of Object.entries(steps))
      if (ms >= AT_ONCE_MS) throw new Error(`${name}: ${ms} ms`)

    expect(heard.left).toEqual([])
    expect(heard.names).toEqual([])
    const evil = (port: number) => `evil.test ${port} not-allowed pen allow evil.test:${port}`
    expect(denials(audit)).toEqual([
      ...[evil(80), evil(443)],
      'allowed.test 8080 port-not-allowed pen allow allowed.test:8080',
      `${EVIL} 80 literal-not-allowed pen allow ${EVIL}:80`,
      '2600:beef::66 443 literal-not-allowed pen allow [2600:beef::66]:443',
      ...[80, 443, 80, 443, 80, 443, 7].map(evil),
      `${EVIL} 7 literal-not-allowed pen allow ${EVIL}:7`,
      ...[443, 22, 80, 443, 80].map(evil),
    ])
    // The person sees it too, with the command that would allow it.
    expect(err).toContain('pen: refused: evil.test:443 (6 times); to allow it: pen allow evil.test:443\n')
    expect(err).toContain('pen: refused: [2600:beef::66]:443; to allow it: pen allow [2600:beef::66]:443\n')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P6 git over SSH, psql by address, npm and Java reach what is allowed',
  async (world, project) => {
    const heard = world.listen()
    for (const file of ['user-key', 'ca.pem']) {
      if (!existsSync(join(world.dir, file))) continue
      copyFileSync(join(world.dir, file), join(project.workspace, file))
      project.adopt(file)
    }
    copyFileSync(join(import.meta.dir, 'Fetch.java'), join(project.workspace, 'Fetch.java'))
    project.write('package.json', '{"name":"x","version":"1.0.0"}')
    const has = {
      ssh: existsSync(join(world.dir, 'user-key')),
      psql: existsSync(join(world.dir, 'postgres')),
      java: JAVA.every(existsSync),
    }
    expect(has).toEqual({ ssh: true, psql: true, java: true })
    const ssh =
      'ssh -i ./user-key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
    const { steps, audit } = await runSteps(
      project,
      {
        ssh: `GIT_SSH_COMMAND='${ssh}' git clone -q root@allowed.test:${bare} cloned && cat cloned/README`,
        psql: `psql -h ${UP} -U pentest -d postgres -tAc 'select 6*7'`,
        psqlNo: `psql -h ${EVIL} -U pentest -d postgres -tAc 'select 6*7'`,
        npm: `npm install --no-audit --no-fund --registry http://allowed.test/files/npm/ tiny && node -p "require('tiny')"`,
        java: 'java -XX:TieredStopAtLevel=1 Fetch.java http://allowed.test/ https://allowed.test/ http://evil.test/ https://evil.test/',
      },
      { allow: ALLOW },
    )
    expect(steps.ssh.said).toBe('from the repository\n')
    expect(steps.psql.said).toBe('42\n')
    expect(steps.psqlNo.said).toContain('failed')
    expect(steps.psqlNo.ms).toBeLessThan(AT_ONCE_MS)
    expect(steps.npm.said).toEndWith('tiny works\n')
    const java = steps.java.said.trim().split('\n')
    expect(java.map(line => line.replace(/^\d+ /, ''))).toEqual([
      `200  hello from ${UP} 80`,
      `200  hello from ${UP} 443`,
      expect.stringContaining('403 not-allowed pen refused this connection'),
      expect.stringContaining('access_denied'),
    ])
    for (const line of java) expect(Number(line.split(' ')[0])).toBeLessThan(AT_ONCE_MS)
    expect(heard.left.filter(flow => flow.includes(EVIL))).toEqual([])
    expect(new Set(heard.names)).toEqual(new Set(['allowed.test']))
    expect(denials(audit).map(line => line.split(' ').slice(0, 2).join(' '))).toEqual([
      `${EVIL} 5432`,
      'evil.test 80',
      'evil.test 443',
    ])
  },
  { users: 'ordinary' },
)
