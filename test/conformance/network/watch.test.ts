/** `pen watch` on a real terminal, beside a sandbox that asks. */
import { expect } from 'bun:test'
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../until.ts'
import { ProgramScreen } from '../screen.ts'
import type { Project, Started } from './project.ts'
import { forEachKind, type World } from './world.ts'
import { UP } from './zones.ts'

const ask = (project: Project) =>
  project.writeLive('config.json', JSON.stringify({ version: 1, network: { ask: 'hold', hold: '30s' } }))

const places = (world: World, project: Project) => ({
  argv: [...world.on('host', project.user), 'env', '-C', project.workspace],
  where: {
    cwd: project.workspace,
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: project.home, TERM: 'xterm' },
  },
})

function watch(world: World, project: Project, line = '"$0" watch'): ProgramScreen {
  const { argv, where } = places(world, project)
  return new ProgramScreen([...argv, '/bin/bash', '--norc', '-c', line, world.pen], where, {
    cols: 80,
    rows: 24,
  })
}

/** The last complete screen, without colours. */
function picture(screen: ProgramScreen): string[] {
  const frame = screen.seen.split('\x1b[H').at(-2) ?? ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it removes escape sequences
  return frame.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]/g, '').split('\r\n')
}

/** Selected, and long enough on the screen that a key counts. */
async function isOffered(screen: ProgramScreen, target: string): Promise<void> {
  await screen.shows(`> ${target}`, 10_000)
  await screen.shows(`\x1b[36m> ${target}`, 10_000)
}

async function end({ child, ended }: Started): Promise<void> {
  child.kill('SIGTERM')
  await ended
}

const get = (url: string) => `curl -s -m 25 -o /dev/null -w '%{http_code}\\n' ${url}`

forEachKind(
  'P16 a key in pen watch allows a refused host, in 80 columns',
  async (world, project) => {
    const heard = world.listen()
    using screen = watch(world, project)
    await screen.shows('nothing waits for approval')
    const running = project.start(`for i in $(seq 60); do ${get('http://allowed.test/')}; sleep 0.2; done`)
    await screen.shows('1 refused host')
    expect([heard.left, heard.names]).toEqual([[], []])
    // No refused host is selected by default, so a key answers nothing.
    screen.type('a')
    await Bun.sleep(300)
    screen.type('j')
    await isOffered(screen, 'allowed.test:80')
    expect(running.text.out).toMatch(/^(403\n)+$/)
    for (const line of picture(screen)) expect(line.length).toBeLessThanOrEqual(80)
    screen.type('s')
    await until(() => running.text.out.includes('200\n'))
    await screen.shows('allowed until the sandbox stops: allowed.test:80')
    await end(running)
    screen.type('q')
    expect(await screen.ended()).toBe(0)
  },
  { users: 'ordinary' },
)

forEachKind(
  'P16 a key in pen watch answers a held connection: once, for the session, always, not now',
  async (world, project) => {
    ask(project)
    const heard = world.listen()
    using screen = watch(world, project)
    await screen.shows('nothing waits for approval')
    const http = get('http://allowed.test/')
    const running = project.start(
      `${http}; ${http}; ${http}; ${http}; ${get('http://allowed.test:8080/')}; ${get('http://both.test/')}; ${get('http://both.test/')}; ${get('http://both.test/')}`,
    )
    await isOffered(screen, 'allowed.test:80')
    expect([heard.left, heard.names]).toEqual([[], []])
    screen.type('o')
    await until(() => running.text.out === '200\n')
    // pen asks about the second one again.
    await screen.shows('allowed once: allowed.test:80')
    await isOffered(screen, 'allowed.test:80')
    screen.type('s')
    await until(() => running.text.out === '200\n200\n200\n200\n')
    await isOffered(screen, 'allowed.test:8080')
    screen.type('a')
    await until(() => running.text.out === '200\n200\n200\n200\n200\n')
    await isOffered(screen, 'both.test:80')
    screen.type('d')
    await until(() => running.text.out.endsWith('403\n'))
    await end(running)
    screen.type('q')
    expect(await screen.ended()).toBe(0)
    const config = JSON.parse(readFileSync(join(project.stateDir, 'config.json'), 'utf8')) as object
    expect(config).toMatchObject({ network: { http: ['allowed.test:8080'] } })
    expect(new Set(heard.left)).toEqual(new Set([`tcp ${UP} 80`, `tcp ${UP} 8080`]))
    const from = project
      .audit()
      .flatMap(({ kind, from }) => (kind === 'connection-allowed' ? [String(from)] : []))
    expect(from[0]).toMatch(/^pen watch, one connection, run /)
    expect(from[1]).toMatch(/^pen watch, run /)
    expect(from[4]).toMatch(/^live config \(/)
  },
)

forEachKind(
  'P16 never is permanent, and no key answers what has just appeared',
  async (world, project) => {
    ask(project)
    const heard = world.listen()
    using screen = watch(world, project)
    await screen.shows('nothing waits for approval')
    const running = project.start(`${get('http://allowed.test/')}; ${get('http://allowed.test/')}`)
    // Typed before anything was there, and at the moment it appears.
    screen.type('a')
    await screen.shows('> allowed.test:80', 10_000)
    screen.type('a')
    // Pasted text is not an answer.
    screen.type('sssaaa')
    await screen.shows('\x1b[36m> allowed.test:80', 10_000)
    expect(running.text.out).toBe('')
    screen.type('n')
    expect((await running.ended).out).toBe('403\n403\n')
    expect(project.pen('config', 'get', 'network.deny')).toContain('allowed.test:80')
    expect(project.pen('config', 'get', 'network.http')).not.toContain('allowed.test')
    expect([heard.left, heard.names]).toEqual([[], []])
    screen.type('\x03')
    expect(await screen.ended()).toBe(0)
  },
  { users: 'ordinary' },
)

forEachKind('P15 pen watch restores the terminal, whatever ends it', async (world, project) => {
  const modes = 'stty -g; "$0" watch; echo "code $?"; stty -g'
  const ends: Readonly<Record<string, (screen: ProgramScreen) => void>> = {
    q: screen => screen.type('q'),
    'Ctrl-C': screen => screen.type('\x03'),
    SIGTERM: () => signalWatchers(project, 'SIGTERM'),
    SIGINT: () => signalWatchers(project, 'SIGINT'),
  }
  for (const [how, endIt] of Object.entries(ends)) {
    using screen = watch(world, project, modes)
    const before = await screen.shows(/[0-9a-f:]{20,}\r\n/)
    await screen.shows('nothing waits for approval')
    endIt(screen)
    await screen.shows('\x1b[2J\x1b[?7h\x1b[?25h\x1b[?1049l')
    await screen.shows('code 0')
    const after = await screen.shows(/[0-9a-f:]{20,}\r\n/)
    expect(`${how} ${after}`).toBe(`${how} ${before}`)
    expect(await screen.ended()).toBe(0)
  }
  // Its window is closed: it does not stay behind.
  const screen = watch(world, project, 'exec "$0" watch')
  await screen.shows('nothing waits for approval')
  const [pid = 0] = watchers(project)
  screen.close()
  await until(() => !watchers(project).includes(pid))
})

forEachKind(
  'P15 pen watch follows the size of its terminal',
  async (world, project) => {
    using screen = watch(world, project)
    await screen.shows('nothing waits for approval')
    for (const [cols, rows] of [
      [40, 10],
      [120, 50],
      [20, 4],
    ] as const) {
      screen.resize(cols, rows)
      await until(() => picture(screen).length === rows)
      expect(Math.max(...picture(screen).map(line => line.length))).toBeLessThanOrEqual(cols)
    }
    screen.type('q')
    expect(await screen.ended()).toBe(0)
  },
  { users: 'ordinary' },
)

forEachKind(
  'P15 on the sandbox’s own terminal pen asks nothing: a line names the command to use',
  async (world, project) => {
    const heard = world.listen()
    const { argv, where } = places(world, project)
    const script = `${get('http://allowed.test/')} & read word; echo "got $word"; wait`
    using screen = new ProgramScreen(
      [...argv, world.pen, 'run', '--ask', '--', '/bin/sh', '-c', script],
      where,
    )
    await screen.shows('pen: held: allowed.test:80 waits for you. In another terminal: pen watch', 10_000)
    screen.type('s\r')
    await screen.shows('got s')
    expect([heard.left, heard.names]).toEqual([[], []])
    project.pen('allow', 'allowed.test:80', '--once')
    await screen.shows('200\r\n')
    expect(await screen.ended()).toBe(0)
  },
)

forEachKind(
  'P11 beside a command in a running sandbox a line names what waits, on a terminal and in a pipe',
  async (world, project) => {
    const { argv, where } = places(world, project)
    const exec = ['exec', '--', '/bin/sh', '-c', get('http://allowed.test/')]
    const said = 'pen: held: allowed.test:80 waits for you. In another terminal: pen watch'
    try {
      expect(project.command(['start', '--detach', '--backend', 'process', '--ask']).status).toBe(0)
      using screen = new ProgramScreen([...argv, world.pen, ...exec], where)
      await screen.shows(said)
      await screen.shows('--session\r\n')
      project.pen('allow', 'allowed.test:80', '--once')
      await screen.shows('200\r\n')
      expect(await screen.ended()).toBe(0)
      const [program = '', ...rest] = [...argv, world.pen, ...exec]
      const child = spawn(program, rest, { ...where, stdio: ['ignore', 'pipe', 'pipe'] })
      const text = { out: '', err: '' }
      child.stdout.on('data', (data: Buffer) => {
        text.out += data.toString()
      })
      child.stderr.on('data', (data: Buffer) => {
        text.err += data.toString()
      })
      await until(() => text.err.includes(said))
      project.pen('deny', 'allowed.test:80', '--once')
      await until(() => text.out === '403\n')
      // What the first command waited for is not printed again.
      expect(text.err).toMatch(/^pen: held: [^\n]*--session\n$/)
    } finally {
      project.pen('stop')
    }
  },
  { users: 'ordinary' },
)

forEachKind(
  'P15 without a terminal, and with stdin closed, it prints lines',
  async (world, project) => {
    const { argv, where } = places(world, project)
    const start = (line: string) => {
      const [program = '', ...rest] = [...argv, '/bin/sh', '-c', line, world.pen]
      const child = spawn(program, rest, { ...where, stdio: ['ignore', 'pipe', 'pipe'] })
      const text = { out: '' }
      child.stdout.on('data', (data: Buffer) => {
        text.out += data.toString()
      })
      return { child, text }
    }
    const watching = ['exec "$0" watch', 'exec "$0" watch --json', 'exec "$0" watch <&-'].map(start)
    const ran = await project.run(get('http://evil.test/'))
    expect(ran.out).toBe('403\n')
    for (const { text } of watching)
      await until(() => text.out.includes('run-end') || text.out.includes('ended: exit 0'))
    const [lines, json, closed] = watching.map(({ text }) => text.out)
    expect(lines).toMatch(/deny {3}evil\.test:80 .*→ pen allow evil\.test:80\n/)
    expect(closed).toBe(String(lines))
    const kinds = String(json)
      .trim()
      .split('\n')
      .map(line => (JSON.parse(line) as { kind: string }).kind)
    expect(kinds).toEqual(['run-start', 'connection-denied', 'run-end'])
    for (const { child } of watching) child.kill('SIGTERM')
  },
  { users: 'ordinary' },
)

function watchers(project: Project): number[] {
  return readdirSync('/proc').flatMap(name => {
    try {
      const words = readFileSync(`/proc/${Number(name)}/cmdline`, 'latin1').split('\0')
      const environment = readFileSync(`/proc/${Number(name)}/environ`, 'latin1').split('\0')
      return words[1] === 'watch' && environment.includes(`HOME=${project.home}`) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

function signalWatchers(project: Project, signal: NodeJS.Signals): void {
  for (const pid of watchers(project)) process.kill(pid, signal)
}
