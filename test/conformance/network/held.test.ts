/** Connections that no rule names, with a person at another terminal who answers or does not. */
import { beforeAll, expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, parse } from 'node:path'
import { until } from '../../until.ts'
import { PEN, triesOthers } from '../launcher.ts'
import type { Project, Started } from './project.ts'
import { makeRepository, startSshd } from './services.ts'
import { forEachKind, isReady, World } from './world.ts'
import { UP } from './zones.ts'

const ask = (project: Project, hold = '30s') =>
  project.writeLive('config.json', JSON.stringify({ version: 1, network: { ask: 'hold', hold } }))

const kinds = (project: Project) =>
  project
    .audit()
    .filter(({ kind }) => kind.startsWith('connection-'))
    .map(({ kind, reason }) => (reason === undefined ? kind : `${kind} ${reason}`))
const isHeld = (project: Project, count = 1) =>
  until(() => kinds(project).filter(kind => kind === 'connection-held').length === count, 10_000)

async function end({ child, ended }: Started): Promise<void> {
  child.kill('SIGTERM')
  await ended
}

const SSH = 'ssh -i ./user-key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
let bare = ''

beforeAll(async () => {
  if (!isReady || triesOthers) return
  const world = await World.get()
  bare = makeRepository(world.dir)
  await startSshd(world)
}, 30_000)

forEachKind(
  'P7 a held curl continues when another terminal allows it, and nothing leaves before',
  async (world, project) => {
    const heard = world.listen()
    const running = project.start('curl -sS https://allowed.test/', { flags: ['--ask'] })
    await isHeld(project)
    expect([heard.left, heard.names, heard.requests, running.text.out]).toEqual([[], [], [], ''])
    expect(project.pen('allow', 'allowed.test:443', '--session')).toContain('until the sandbox stops')
    const { code, out, err } = await running.ended
    expect({ code, out }).toEqual({ code: 0, out: `hello from ${UP} 443\n` })
    expect(heard.names).toContain('allowed.test')
    expect(err).toContain('pen: held: allowed.test:443 waits for you. In another terminal: pen watch')
    expect(err).toContain('pen allow allowed.test:443 --session')
    const [held, allowed] = project.audit().filter(({ kind }) => kind.startsWith('connection-'))
    expect(held).toMatchObject({ kind: 'connection-held', verdict: 'hold', name: 'allowed.test', port: 443 })
    expect(allowed).toMatchObject({ kind: 'connection-allowed', connection: held?.connection })
    expect(String(allowed?.['from'])).toMatch(/^pen allow, run \d{8}-\d{6}-[0-9a-f]{6}$/)
    // It ended with the run. Nothing is left of it, and the next run starts as the first did.
    expect(project.pen('config', 'show')).not.toContain('allowed.test')
    const again = await project.run('curl -s -o /dev/null -w "%{http_code}" http://allowed.test/')
    expect(again.out).toBe('403')
  },
)

const clone = (to: string) => `GIT_SSH_COMMAND='${SSH}' git clone -q root@allowed.test:${bare} ${to}`

function bringKey(world: World, project: Project): void {
  copyFileSync(join(world.dir, 'user-key'), join(project.workspace, 'user-key'))
  project.adopt('user-key')
}

forEachKind(
  'P7 a held git clone over SSH continues when allowed, and fails with the reason when denied',
  async (world, project) => {
    bringKey(world, project)
    ask(project)
    const heard = world.listen()
    const running = project.start(`${clone('one')} && cat one/README; ${clone('two')}; echo code $?`)
    await isHeld(project)
    expect([heard.left, heard.names]).toEqual([[], []])
    project.pen('allow', 'allowed.test:22', '--once')
    await until(() => running.text.out === 'from the repository\n', 20_000)
    await isHeld(project, 2)
    const left = heard.left.length
    project.pen('deny', 'allowed.test:22', '--once')
    const { out, err } = await running.ended
    expect(out).toBe('from the repository\ncode 128\n')
    expect(heard.left.length).toBe(left)
    expect(err).toMatch(/Received disconnect from .*: pen refused this connection: .*\(denied-by-rule\)/)
    expect(err).toContain('pen: refused: allowed.test:22; to allow it: pen allow allowed.test:22\n')
    expect(kinds(project)).toEqual([
      'connection-held',
      'connection-allowed',
      expect.stringMatching(/^connection-closed (client|upstream)$/),
      'connection-held',
      'connection-denied denied-by-rule',
    ])
    expect(project.audit().find(({ kind }) => kind === 'connection-denied')?.['from']).toMatch(
      /^pen deny, one connection, until /,
    )
  },
  { users: 'ordinary' },
)

forEachKind(
  'P11 a held git clone without an answer fails with the reason and the command that allows it',
  async (world, project) => {
    bringKey(world, project)
    ask(project, '2s')
    const heard = world.listen()
    const { out, err } = await project.run(`${clone('one')}; echo code $?; ls -d one 2>/dev/null`)
    expect(out).toBe('code 128\n')
    expect(err).toMatch(
      /Received disconnect from .*: pen refused this connection: .*no one answered within 2 s.*: pen allow allowed\.test:22 \(not-answered\)/,
    )
    expect(err).toContain('pen: refused: allowed.test:22; to allow it: pen allow allowed.test:22\n')
    expect(kinds(project)).toEqual(['connection-held', 'connection-denied not-answered'])
    expect([heard.left, heard.names]).toEqual([[], []])
  },
  { users: 'ordinary' },
)

forEachKind(
  'P11 a held connection that is denied or unanswered gets the reason in its own protocol',
  async (world, project) => {
    ask(project, '2s')
    const heard = world.listen()
    const running = project.start(
      `curl -s -D- http://allowed.test/ & curl -sS https://evil.test/ 2>&1 & wait
       curl -s http://allowed.test:8080/ & curl -sS https://allowed.test/ 2>&1; wait`,
    )
    await isHeld(project, 2)
    project.pen('deny', 'allowed.test:80')
    project.pen('deny', 'evil.test')
    const { out, err } = await running.ended
    expect(out).toContain('x-pen-denied: denied-by-rule')
    expect(out).toContain('reason: not-answered')
    expect(out).toContain('no one answered within 2 s')
    expect(out.match(/curl: \(35\).*alert/g)?.length).toBe(2)
    expect([heard.left, heard.names, heard.requests]).toEqual([[], [], []])
    expect(
      kinds(project)
        .filter(kind => kind.startsWith('connection-denied'))
        .toSorted((a, b) => a.localeCompare(b)),
    ).toEqual([
      'connection-denied denied-by-rule',
      'connection-denied denied-by-rule',
      'connection-denied not-answered',
      'connection-denied not-answered',
    ])
    expect(err).toContain('pen: refused: allowed.test:8080; to allow it: pen allow allowed.test:8080\n')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P6 a grant for one connection lets one of twenty through, in two sandboxes at once',
  async (world, project) => {
    const heard = world.listen()
    const dial = `sleep 0.2; for i in 1 2 3 4 5 6 7 8 9 10; do
      curl -s -m 20 -o /dev/null -w '%{http_code}\\n' http://allowed.test/ & done; wait`
    project.pen('allow', 'other.test:80', '--once')
    project.pen('allow', 'allowed.test:80', '--once')
    const runs = [project.start(dial), project.start(dial)]
    const codes = (await Promise.all(runs.map(({ ended }) => ended))).flatMap(({ out }) =>
      out.trim().split('\n'),
    )
    expect(codes.filter(code => code === '200')).toHaveLength(1)
    expect(codes.filter(code => code === '403')).toHaveLength(19)
    expect(heard.requests).toHaveLength(1)
    expect(kinds(project).filter(kind => kind === 'connection-allowed')).toHaveLength(1)
    // The grant for another sandbox is still there.
    expect(project.pen('forget', 'other.test:80', 'allowed.test:80')).toBe('removed: other.test:80\n')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P6 a grant for a time ends then, and so do its connections',
  async (world, project) => {
    const heard = world.listen()
    const running = project.start(`/usr/bin/python3 -c "
import socket, time
def dial():
    s = socket.create_connection(('allowed.test', 7), 5); s.settimeout(3)
    if s.recv(99) == b'': raise OSError('refused')
    return s
while True:
    try: s = dial(); break
    except OSError: time.sleep(0.05)
print('open', flush=True)
try:
    while True:
        s.send(b'x'); time.sleep(0.02)
        if s.recv(9) == b'': break
except OSError: pass
print('gone', flush=True)
try: dial(); print('again', flush=True)
except OSError: print('refused', flush=True)
"`)
    await until(() => kinds(project).includes('connection-denied not-allowed'), 10_000)
    const began = Date.now()
    project.pen('allow', 'allowed.test:7', '--for', '3s')
    expect(project.pen('policy', 'explain', 'allowed.test:7')).toMatch(/from: pen allow, until \d{4}-/)
    const { out } = await running.ended
    expect(out).toBe('open\ngone\nrefused\n')
    expect(Date.now() - began).toBeGreaterThan(2900)
    expect(heard.left).toEqual([`tcp ${UP} 7`])
    expect(project.audit().filter(({ kind }) => kind === 'policy-changed')).toMatchObject([
      { added: ['allowed.test:7'], removed: [] },
      { added: [], removed: ['allowed.test:7'], reason: 'expired' },
    ])
    expect(kinds(project)).toContain('connection-closed policy')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P8 pen never asks about services of this machine, its network or its cloud',
  async (world, project) => {
    ask(project)
    const heard = world.listen()
    const to = ['10.0.0.5', '169.254.169.254', '192.168.1.1', 'host.pen.internal', 'metadata.google.internal']
    const { out } = await project.run(
      to.map(host => `curl -s -m 5 -o /dev/null -w '%{http_code} ' http://${host}/`).join('; '),
    )
    expect(out).toBe('403 '.repeat(to.length))
    expect(kinds(project).filter(kind => kind === 'connection-held')).toEqual([])
    expect([heard.left, heard.names, heard.loopback]).toEqual([[], [], []])
  },
  { users: 'ordinary' },
)

forEachKind(
  'P16 the sandbox can neither answer for the person nor find where answers are stored',
  async (world, project) => {
    ask(project)
    const heard = world.listen()
    const grant = JSON.stringify({
      version: 1,
      allow: 'allowed.test:80',
      by: 'pen allow',
      made: new Date().toISOString(),
      until: new Date(Date.now() + 3_600_000).toISOString(),
    })
    const running = project.start(
      `for d in ${project.stateDir}/grants grants .pen/grants ~/.pen/grants; do
         mkdir -p $d 2>/dev/null; (echo '${grant}' > $d/20260102T030405678Z-1a2b3c4d.json) 2>/dev/null; done
       ${world.pen} allow allowed.test:80 --session 2>&1; AGENT_IN_SANDBOX= ${world.pen} allow allowed.test:80 --for 1h 2>&1
       curl -s http://allowed.test/`,
    )
    await isHeld(project)
    await Bun.sleep(600)
    expect([heard.left, heard.names]).toEqual([[], []])
    await end(running)
    expect(kinds(project)).toEqual(['connection-held', 'connection-denied hung-up'])
    expect(project.audit().filter(({ kind }) => kind === 'policy-changed')).toEqual([])
    // The backup that people commit contains no temporary grant.
    project.pen('allow', 'allowed.test:80', '--for', '1h')
    project.pen('config', 'backup')
    expect(project.pen('config', 'diff')).not.toContain('allowed.test')
  },
)

forEachKind(
  'P16 a program answers held connections by the library: they continue, or get the reason',
  async (world, project) => {
    for (const file of [join(import.meta.dir, 'answer.mjs'), join(dirname(PEN), 'index.js')])
      copyFileSync(file, join(world.dir, basename(file)))
    const heard = world.listen()
    const words = [...world.on('host', project.user), 'env', '-C', project.workspace, `HOME=${project.home}`]
    const [program = '', ...rest] = [...words, 'node', join(world.dir, 'answer.mjs'), world.pen]
    const { stdout, stderr } = spawnSync(program, rest, { encoding: 'utf8', timeout: 40_000 })
    expect([stdout, stderr]).toEqual([
      'asked allowed.test:80\nallowed.test: 200\nasked evil.test:80\nevil.test: denied-by-rule 403\n',
      '',
    ])
    expect(heard.names).not.toContain('evil.test')
    expect(kinds(project).filter(kind => !kind.startsWith('connection-closed'))).toEqual([
      'connection-held',
      'connection-allowed',
      'connection-held',
      'connection-denied denied-by-rule',
    ])
  },
  { users: 'ordinary' },
)

/** Its arguments, one per line, and its environment. */
const NOTIFY = `#!/bin/sh
{ echo "called with $#"; printf '%s\\n' "$@"; } >> "$XDG_RUNTIME_DIR/notified"
env >> "$XDG_RUNTIME_DIR/environment"
`

/** A program where only root can put it, on the test's machine alone. */
function installNotifySend(world: World): void {
  const file = join(world.dir, 'notify-send')
  writeFileSync(file, NOTIFY)
  const script = `mountpoint -q /usr/local/sbin || mount -t tmpfs -o mode=755 none /usr/local/sbin
    cp ${file} /usr/local/sbin/ && chmod 755 /usr/local/sbin/notify-send`
  const [program = '', ...rest] = [...world.on('host'), 'sh', '-ec', script]
  expect(spawnSync(program, rest).status).toBe(0)
}

forEachKind(
  'P15 the desktop shows what waits, in pen’s own words, and no invalid name',
  async (world, project) => {
    installNotifySend(world)
    ask(project)
    project.write('desktop/bus', '')
    const dial = (name: string) => `curl -s -m 3 -o /dev/null 'http://${name}/'`
    const odd = ['--urgency=critical.test', '-t1.test', '<b>x</b>.test', 'a&lt;b.test', 'a%0a--help.test']
    const desktop = join(project.workspace, 'desktop')
    const running = project.start(`${odd.map(dial).join('; ')}; echo on; ${dial('allowed.test')}`, {
      env: { XDG_RUNTIME_DIR: desktop, OPENAI_API_KEY: 'canary' },
    })
    const read = (name: string): string => {
      const file = join(desktop, name)
      return existsSync(file) ? readFileSync(file, 'utf8') : ''
    }
    await until(() => read('environment').includes('XDG_RUNTIME_DIR='))
    await end(running)
    const { name } = parse(project.stateDir)
    expect(read('notified')).toBe(
      `called with 4\n--app-name=pen\n--\nA sandbox asks to connect\nallowed.test:80, for ${name}. Answer with pen watch.\n`,
    )
    expect(read('environment')).not.toContain('canary')
    // Nothing is started without a desktop.
    const alone = project.start(dial('both.test'))
    await isHeld(project, 2)
    await end(alone)
    expect(read('notified').match(/called/g)).toHaveLength(1)
  },
)
