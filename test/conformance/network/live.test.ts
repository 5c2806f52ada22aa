/** The policy while a sandbox runs: the user's edit takes effect at once and as a whole, and no other edit does. */
import { expect } from 'bun:test'
import { until } from '../../until.ts'
import type { Project, Started } from './project.ts'
import { forEachKind } from './world.ts'
import { UP } from './zones.ts'

const config = (...http: string[]) => JSON.stringify({ version: 1, network: { http } })

/** Asks again and again, one line per answer. */
const asking = (url: string, more = '') =>
  `while :; do curl -s -m3 -o /dev/null -w '%{http_code}\\n' ${more} ${url}; sleep 0.02; done`

async function end({ child, ended }: Started): Promise<void> {
  child.kill('SIGTERM')
  await ended
}

const last = ({ text }: Started): string => text.out.trimEnd().split('\n').at(-1) ?? ''
const kinds = (project: Project, kind: string) => project.audit().filter(line => line.kind === kind)

forEachKind(
  'P16 an edit of the live config takes effect within a second, and so does its undo',
  async (_world, project) => {
    project.writeLive('config.json', config('other.test:80'))
    const running = project.start(asking('http://allowed.test/'))
    await until(() => last(running) === '403')
    project.writeLive('config.json', config('other.test:80', 'allowed.test:80'))
    expect(await until(() => last(running) === '200')).toBeLessThan(1000)
    project.writeLive('config.json', config('other.test:80'))
    expect(await until(() => last(running) === '403')).toBeLessThan(1000)
    project.writeLive('http-allowlist.txt', '# by hand\nallowed.test:80\n')
    expect(await until(() => last(running) === '200')).toBeLessThan(1000)
    await end(running)
    expect(kinds(project, 'policy-changed').map(({ added, removed }) => [added, removed])).toEqual([
      [['allowed.test:80'], []],
      [[], ['allowed.test:80']],
      [['allowed.test:80'], []],
    ])
  },
)

forEachKind(
  'P16 what is applied from the project, after it was shown, holds in the running sandbox',
  async (_world, project) => {
    project.writeLive('config.json', config('other.test:80'))
    project.write('.pen/config.json', config('allowed.test:80'))
    const running = project.start(asking('http://allowed.test/'))
    await until(() => last(running) === '403')
    const digest = project.pen('config', 'diff').trimEnd().split('\n').at(-1) ?? ''
    expect(project.pen('config', 'apply', '--yes', '--expect', digest)).toContain('applied for')
    expect(await until(() => last(running) === '200')).toBeLessThan(1000)
    project.pen('config', 'set', 'network.deny', 'allowed.test')
    expect(await until(() => last(running) === '403')).toBeLessThan(1000)
    await end(running)
    expect(kinds(project, 'policy-changed').map(({ added, removed }) => [added, removed])).toEqual([
      [['allowed.test:80'], ['other.test:80']],
      [['deny allowed.test'], []],
    ])
  },
  { users: 'ordinary' },
)

forEachKind(
  'P16 a narrowing ends the tunnels that it no longer allows, and no others',
  async (world, project) => {
    project.writeLive('config.json', config('allowed.test:7', 'allowed.test:80', 'both.test:7'))
    const heard = world.listen()
    const talk = (host: string, label: string) => `/usr/bin/python3 -c "
import socket, sys, time
s = socket.create_connection(('${host}', 7), 5)
s.recv(99)
try:
    while True:
        s.send(b'x\\n'); s.recv(9); print('${label}', flush=True); time.sleep(0.02)
except OSError as e: print('${label} gone', flush=True)"`
    const running = project.start(`${talk('allowed.test', 'narrowed')} & ${talk('both.test', 'kept')}`)
    await until(() => running.text.out.includes('narrowed\n') && running.text.out.includes('kept\n'))
    project.writeLive('config.json', config('allowed.test:80', 'both.test:7'))
    expect(await until(() => running.text.out.includes('narrowed gone'))).toBeLessThan(1000)
    const sent = heard.requests.length
    const kept = running.text.out.split('kept\n').length
    await until(() => running.text.out.split('kept\n').length > kept + 5)
    expect(heard.requests.length).toBeGreaterThan(sent)
    await end(running)
    expect(running.text.out).not.toContain('kept gone')
    const closed = kinds(project, 'connection-closed').find(({ name }) => name === 'allowed.test')
    expect(closed?.reason).toBe('policy')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P16 a broken edit keeps the previous policy, and is reported',
  async (_world, project) => {
    project.writeLive('config.json', config('allowed.test:80'))
    const running = project.start(
      `${asking('http://evil.test/')} & ${asking('http://allowed.test/', "-w 'up %{http_code}\\n'")}`,
    )
    await until(() => running.text.out.includes('up 200') && running.text.out.includes('403'))
    const broken = [
      '{"version": 1, "network": {',
      '{"version":1,"network":{"http":["*"]}}',
      '{"version":1,"netwrk":{}}',
      '\0\0\0\0',
      '',
    ]
    for (const text of broken) {
      const before = kinds(project, 'policy-edit-refused').length
      project.writeLive('config.json', text)
      expect(await until(() => kinds(project, 'policy-edit-refused').length > before)).toBeLessThan(1000)
    }
    const from = running.text.out.length
    await until(() => running.text.out.length > from + 200)
    await end(running)
    const codes = new Set(running.text.out.split('\n').filter(line => line !== ''))
    expect(codes).toEqual(new Set(['403', 'up 200']))
    expect(running.text.err.match(/an edit was refused, the old policy stays in force/g)?.length).toBe(
      broken.length,
    )
    expect(running.text.err).toContain('config.json:1:')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P16 fifty unrelated edits open nothing, not for a moment',
  async (world, project) => {
    const heard = world.listen()
    project.writeLive('config.json', config('allowed.test:80'))
    const flood = `for i in 1 2 3 4; do ${asking('http://evil.test/')} & done; wait`
    const running = project.start(flood)
    await until(() => last(running) === '403')
    const answers = () => running.text.out.split('\n').length
    // A busy machine answers slowly: the edits go on until there are enough answers.
    for (let i = 0; i < 50 || (answers() <= 50 && i < 1000); i++) {
      project.writeLive(
        'config.json',
        JSON.stringify({ version: 1, network: { http: ['allowed.test:80'], idle: `${i + 10}m` } }),
      )
      await Bun.sleep(30)
    }
    await until(() => kinds(project, 'policy-changed').length >= 4)
    await end(running)
    expect(new Set(running.text.out.split('\n').filter(line => /^\d+$/.test(line)))).toEqual(new Set(['403']))
    expect(answers()).toBeGreaterThan(50)
    expect([heard.left, heard.names]).toEqual([[], []])
  },
  { users: 'ordinary' },
)

forEachKind(
  'P16 nothing that the sandbox writes changes the policy: its project, its home, guessed paths',
  async (world, project) => {
    const heard = world.listen()
    const wide = config('evil.test:80')
    const { out } = await project.run(
      `mkdir -p .pen ~/.pen/sandboxes/x 2>/dev/null
     for f in .pen/config.json agent-permissions.json config.json http-allowlist.txt ~/.pen/config.json ${project.stateDir}/config.json ${project.stateDir}/http-allowlist.txt; do
       (echo '${wide}' > $f) 2>/dev/null && echo "wrote $f" >&2; done
     sleep 0.6; curl -s -o /dev/null -w '%{http_code}' http://evil.test/; curl -s http://allowed.test/; ls ${project.stateDir} 2>&1 | wc -l`,
      { allow: ['allowed.test:80'] },
    )
    expect(out).toStartWith(`403hello from ${UP} 80\n`)
    // The same in the next run, which finds these files at the start.
    const again = await project.run(`curl -s -o /dev/null -w '%{http_code}' http://evil.test/`, {
      allow: ['allowed.test:80'],
    })
    expect(again.out).not.toContain('200')
    expect(heard.left).toEqual([`tcp ${UP} 80`])
    expect(kinds(project, 'policy-changed')).toEqual([])
  },
)

forEachKind(
  'P16 agent-permissions.json is read before the start and never again',
  async (world, project) => {
    const heard = world.listen()
    project.writeLive('config.json', config('allowed.test:80'))
    const wide = JSON.stringify({ network: { http: ['evil.test:80'] } })
    const running = project.start(
      `echo '${wide}' > agent-permissions.json; ${asking('http://evil.test/')} & ${asking('http://allowed.test/', "-w 'up %{http_code}\\n'")}`,
      { flags: ['--allow-user-expansion'] },
    )
    await until(() => running.text.out.includes('up 200') && running.text.out.includes('403'))
    // An edit by the user does not activate what the agent wrote.
    project.writeLive('config.json', config('allowed.test:80', 'other.test:80'))
    await until(() => kinds(project, 'policy-changed').length === 1)
    // A file that the agent breaks does not keep the user from removing a permission.
    project.write('agent-permissions.json', '{ not json')
    project.writeLive('config.json', config('other.test:80'))
    expect(await until(() => running.text.out.includes('up 403'))).toBeLessThan(1000)
    await end(running)
    expect(running.text.out.match(/^200$/m)).toBeNull()
    expect(heard.left.filter(flow => !flow.includes(UP))).toEqual([])
    expect(kinds(project, 'policy-edit-refused')).toEqual([])
  },
  { users: 'ordinary' },
)
