/** The library, as a program has it: on Node and on Bun, in a process of its own, as root and as an ordinary user. */
import { expect } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Stopwatch } from '../stopwatch.ts'
import { type Ground, onGrounds, type Place, PROCESS, until } from './place.ts'
import { type Program, type Runtime, withProgram } from './program.ts'

/** One claim on each runtime and for each kind of user, in a project whose sandbox has no network. */
function claim(
  title: string,
  body: (program: Program, place: Place) => Promise<void>,
  config: object = OFFLINE,
): void {
  const onRuntime = (runtime: Runtime, grounds: readonly Ground[]): void =>
    onGrounds(grounds, `${title}, on ${runtime}`, async place => {
      place.configure(config)
      await withProgram(place, runtime, program => body(program, place))
    })
  onRuntime('node', PROCESS)
  onRuntime('bun', PROCESS.slice(-1))
}

const OFFLINE = { network: { offline: true } }

/** What was killed is seen for a moment more, until somebody takes note of its end. */
async function nothingLeft(program: Program): Promise<void> {
  const left = async () => (await program.exec('pgrep sleep || echo none')).stdout
  for (const late = performance.now() + 10_000; (await left()) !== 'none\n'; )
    if (performance.now() > late) throw new Error('it still runs')
}

claim(
  'a command has its exit code, its streams apart, its input, directory and variables',
  async (program, place) => {
    mkdirSync(join(place.project, 'below'))
    const started = await program.ask('start', { project: place.project })
    expect(started).toMatchObject({ project: place.project, backend: 'process', joined: false })
    expect(await program.exec('echo out; echo err >&2; exit 3')).toEqual({
      exitCode: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      timedOut: false,
      limit: null,
      denials: [],
      truncated: false,
    })
    const options = { stdin: 'typed', cwd: 'below', env: { COLOUR: 'green' } }
    expect(await program.exec('pwd; cat; echo; echo $COLOUR', options)).toMatchObject({
      stdout: `${place.project}/below\ntyped\ngreen\n`,
    })
    // Words are read by no shell.
    expect(await program.exec(['echo', '$HOME', ';', 'false'])).toMatchObject({ stdout: '$HOME ; false\n' })
    expect(await program.exec(['kill', '-9', '0'])).toMatchObject({ exitCode: 137 })
    expect(await program.exec(['absent-program'])).toMatchObject({
      exitCode: 127,
      stderr: 'pen: absent-program was not found in the sandbox\n',
    })
  },
)

claim(
  'a command that takes too long is ended with all that it started, and what it said is kept',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    const watch = new Stopwatch()
    const late = await program.exec('echo partly; (sleep 100; echo > survived) & sleep 100', { timeout: 300 })
    expect(late).toMatchObject({ exitCode: 124, timedOut: true, stdout: 'partly\n' })
    expect(watch.ms).toBeLessThan(5000)
    // A command may end with this very code by itself.
    expect(await program.exec('exit 124')).toMatchObject({ exitCode: 124, timedOut: false })
    await nothingLeft(program)
    expect(await program.failure('exec', { command: 'true', options: { timeout: 0 } })).toMatchObject({
      code: 'USAGE',
    })
  },
)

claim(
  'a timeout above the ceiling is refused, and a spawned command has none unless it is given one',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    expect(await program.exec('sleep 100')).toMatchObject({ timedOut: true })
    expect(await program.exec('sleep 100', { timeout: 500 })).toMatchObject({ timedOut: true })
    const long = { command: 'true', options: { timeout: 50_000 } }
    for (const call of ['exec', 'unread'] as const)
      expect(await program.failure(call, long)).toMatchObject({
        code: 'USAGE',
        what: 'a timeout of 50000 ms is above exec.ceiling of the policy, 600 ms',
        hint: expect.any(String),
      })
    expect(await program.ask('unread', { command: 'sleep 1; echo on' })).toMatchObject({ stdout: 'on\n' })
    const short = { command: 'sleep 100', options: { timeout: 300 } }
    expect(await program.ask('unread', short)).toMatchObject({ timedOut: true, exitCode: 124 })
  },
  { ...OFFLINE, exec: { timeout: '300ms', ceiling: '600ms' } },
)

claim('output without end is kept within its bound, from both ends', async (program, place) => {
  await program.ask('start', { project: place.project })
  const long = await program.exec('echo first; head -c 30000000 /dev/zero | tr "\\0" x; echo; echo last', {
    maxOutput: 1000,
  })
  expect(long).toMatchObject({ exitCode: 0, truncated: true })
  expect(long.stdout).toStartWith('first\nxxx')
  expect(long.stdout).toEndWith('xxx\nlast\n')
  expect(long.stdout).toContain('bytes left out')
  expect(long.stdout.length).toBeLessThan(1100)
})

claim(
  'a command that is aborted is killed, and the call fails as aborted calls do',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    const order = { command: 'trap "" TERM; sleep 100', abortAfter: 200 }
    expect(await program.failure('exec', order)).toMatchObject({ name: 'TimeoutError', isOurs: false })
    await nothingLeft(program)
  },
)

claim('a server inside is reached from this machine until its forward is closed', async (program, place) => {
  await program.ask('start', { project: place.project })
  await program.ask('leave', { command: ['python3', '-m', 'http.server', '8000', '--bind', '127.0.0.1'] })
  const { address, port } = await program.ask('forward', { port: 8000 })
  const page = async (): Promise<number | string> =>
    await fetch(`http://${address}:${port}/`, { keepalive: false }).then(
      ({ status }) => status,
      ({ code }) => code,
    )
  // Until the server listens, what is forwarded is closed at once.
  for (const late = performance.now() + 10_000; (await page()) !== 200; await Bun.sleep(20))
    if (performance.now() > late) throw new Error('it is not reached')
  expect(await program.failure('forward', { port: 8000, options: { hostPort: port } })).toMatchObject({
    code: 'CONNECT',
    isOurs: true,
  })
  expect(await program.failure('forward', { port: 0 })).toMatchObject({ code: 'USAGE' })
  await program.ask('unforward')
  expect(String(await page())).toMatch(/refused/i)
  await program.ask('stop')
})

claim('output is read as it comes, and input is written meanwhile', async (program, place) => {
  await program.ask('start', { project: place.project })
  const { pieces, result } = await program.ask('stream', {
    command: ['sh', '-c', 'echo ready; read a; echo "got $a"; read b; echo "got $b"; cat'],
    input: ['one\n', 'two\n'],
  })
  expect(pieces).toEqual([
    ['stdout', 'ready\n'],
    ['stdout', 'got one\n'],
    ['stdout', 'got two\n'],
  ])
  expect(result).toMatchObject({ exitCode: 0 })
  // Where nobody reads, nothing waits for a reader, and nothing is lost.
  const unread = { command: 'echo first; head -c 5000000 /dev/zero; echo err >&2; exit 4' }
  const lost = await program.ask('unread', unread)
  expect(lost).toMatchObject({ exitCode: 4, stderr: 'err\n', truncated: false })
  expect([lost.stdout.slice(0, 6), lost.stdout.length]).toEqual(['first\n', 5_000_006])
  expect(await program.ask('late', { command: 'echo one; sleep 0.1; echo two' })).toEqual({
    stdout: 'one\ntwo\n',
    read: 'one\ntwo\n',
  })
})

claim('a spawned command has the streams and events of a child process', async (program, place) => {
  await program.ask('start', { project: place.project })
  expect(await program.ask('child', { command: 'cat; echo err >&2; exit 3', input: 'typed' })).toEqual({
    stdout: 'typed',
    stderr: 'err\n',
    events: [
      ['exit', 3, null],
      ['close', 3, null],
    ],
  })
  expect(await program.ask('child', { command: 'exec sleep 100', kill: 'SIGTERM' })).toMatchObject({
    events: [
      ['exit', null, 'SIGTERM'],
      ['close', null, 'SIGTERM'],
    ],
  })
  // 30 MB at the pace of a slow reader: nothing is lost, nothing is held in memory.
  expect(await program.ask('slow', { command: 'head -c 30000000 /dev/zero' })).toBe(30_000_000)
  await nothingLeft(program)
})

claim('a listener that throws costs nobody an event, and its error is heard', async (program, place) => {
  await program.ask('start', { project: place.project })
  await program.ask('throw')
  for (const name of ['one', 'two']) await program.failure('read', { path: `/root/${name}` })
  const heard: string[] = []
  for (
    const late = performance.now() + 10_000;
    heard.length < 4 && performance.now() < late;
    await Bun.sleep(20)
  )
    heard.push(...(await program.ask('events')).map(({ name }) => name))
  expect(heard).toEqual(['denial', 'error', 'denial', 'error'])
})

claim('what a program gets wrong is told in words, and never runs', async (program, place) => {
  const options = { project: place.project }
  const wrong = async (
    op: Parameters<Program['failure']>[0],
    order: object,
    words: string,
    hint?: string,
  ) => {
    const failed = await program.failure(op, order)
    expect({ op, order, ...failed }).toMatchObject({ isOurs: true, what: expect.stringContaining(words) })
    if (hint !== undefined) expect(failed.hint).toContain(hint)
  }
  await wrong('start', { ...options, ofline: true }, 'no option "ofline"', '"offline"')
  await wrong('start', {}, 'the option project of Sandbox.start() is undefined')
  await wrong('start', { ...options, offline: 'yes' }, 'is the text "yes"', 'true or false')
  await wrong('start', { ...options, policy: { netwrok: {} } }, 'netwrok', 'network')
  await wrong('start', { ...options, policy: { network: { ofline: true } } }, 'ofline', 'offline')
  expect(place.isRunning()).toBe(false)
  await program.ask('start', options)
  await wrong('exec', { command: 5 }, 'the command of a call is the number 5', 'array of texts')
  await wrong('exec', { command: null }, 'is null')
  await wrong('exec', { command: 'true', options: { timout: 1 } }, 'no option "timout"', '"timeout"')
  await wrong('exec', { command: 'true', options: { env: 'A=1' } }, 'the option env')
  await wrong('unread', { command: 'true', options: { stdin: 'x' } }, 'box.spawn() has no option "stdin"')
  await wrong('read', { path: 7 }, 'the path of a call is the number 7')
  await wrong('read', { path: 'a', options: { form: 1 } }, 'no option "form"', '"from"')
  await wrong('read', { path: 'a', options: { from: -1 } }, 'from is -1')
  await wrong('write', { path: 'a', content: 7 }, 'the content of files.write()')
  await wrong('write', { path: 'a', content: '', options: { exectable: true } }, 'no option "exectable"')
  await wrong('delete', { path: 'a', options: { recursiv: true } }, 'no option "recursiv"')
  await wrong('search', { pattern: 7 }, 'the pattern of files.search()')
  await wrong('search', { pattern: 'a', options: { ignorecase: true } }, 'no option', '"ignoreCase"')
  await wrong('allow', { target: 7 }, 'the host of box.allow()')
  await wrong('allow', { target: 'a.example:443', options: { onec: true } }, 'no option "onec"', '"once"')
  await wrong('grant', { path: '/etc/hosts', options: { write: true } }, 'no option "write"')
  await wrong('grant', {}, 'the path of box.grant() is undefined')
  await wrong('revoke', {}, 'the path of box.revoke() is undefined')
  await wrong('request', { wanted: { hots: 'a' } }, 'no option "hots"', '"host"')
  await wrong('request', { wanted: null }, 'are null')
  await wrong('forward', { port: '3000' }, '3000 is no port')
  await wrong('forward', { port: 3000, options: { port: 1 } }, 'no option "port"')
  await wrong('listenTo', { event: 'denail' }, 'there is no event "denail"', '"denial"')
  expect(existsSync(join(place.project, 'a'))).toBe(false)
  expect(await program.exec('echo right')).toMatchObject({ stdout: 'right\n' })
})

claim(
  'commands at the same time are not told each other’s refusals as their own',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    const refused = (host: string) => `curl -s -m 5 http://${host}/ || true`
    expect((await program.exec(refused('alone.example'))).denials).toMatchObject([
      { target: 'alone.example:80', by: 'command' },
    ])
    const [one, two] = await program.ask('pair', {
      commands: [`${refused('one.example')}; sleep 1`, `sleep 0.3; ${refused('two.example')}`],
    })
    for (const [result, other] of [
      [one, 'two.example:80'],
      [two, 'one.example:80'],
    ] as const)
      expect(result?.denials.filter(({ target, by }) => target === other && by === 'command')).toEqual([])
  },
  {},
)

claim('a listener that fails ends its command, and the call fails as it did', async (program, place) => {
  await program.ask('start', { project: place.project })
  const watch = new Stopwatch()
  for (const how of ['throws', 'rejects'])
    expect(await program.failure('listen', { command: 'echo a; sleep 30', how })).toMatchObject({
      message: `it ${how}`,
      isOurs: false,
    })
  expect(watch.ms).toBeLessThan(20_000)
  for (const maxOutput of [-1, 'much'])
    expect(await program.failure('exec', { command: 'true', options: { maxOutput } })).toMatchObject({
      code: 'USAGE',
    })
  expect(await program.exec('echo on')).toMatchObject({ stdout: 'on\n' })
})

claim('forty commands at once each get their own output', async (program, place) => {
  await program.ask('start', { project: place.project })
  const results = await program.ask('many', { command: 'echo $$; sleep 0.05', count: 40 })
  expect(new Set(results.map(({ stdout }) => stdout)).size).toBe(40)
})

claim('files are read, written, listed and searched as the sandbox has them', async (program, place) => {
  place.file('src/one.ts', 'first\nsecond needle\n')
  await program.ask('start', { project: place.project })
  await program.ask('write', { path: 'new/deep/two.txt', content: 'written näh\n' })
  const file = join(place.project, 'new/deep/two.txt')
  expect(readFileSync(file, 'utf8')).toBe('written näh\n')
  expect(statSync(file).uid).toBe(place.ground.who.uid)
  expect(await program.ask('read', { path: 'new/deep/two.txt' })).toBe('written näh\n')
  expect(await program.ask('read', { path: 'src/one.ts', options: { from: 6, length: 6 } })).toBe('second')
  const { entries } = await program.ask('list', { path: 'src' })
  expect(entries).toEqual([{ name: 'one.ts', kind: 'file', size: 20 }])
  expect(await program.ask('search', { pattern: 'n..dle' })).toEqual({
    matches: [{ path: join(place.project, 'src/one.ts'), line: 2, text: 'second needle' }],
    more: false,
  })
  expect(await program.failure('read', { path: 'src/absent' })).toMatchObject({
    code: 'NOT_FOUND',
    retry: false,
  })
  expect(await program.failure('read', { path: 'src' })).toMatchObject({ code: 'FILE_REFUSED' })
  // A pipe would keep whoever opens it waiting for another end.
  const pipe = join(place.project, 'pipe')
  Bun.spawnSync(['mkfifo', '-m', '666', pipe])
  const noFile = { code: 'FILE_REFUSED', what: expect.stringContaining('is no file') }
  expect(await program.failure('read', { path: 'pipe' })).toMatchObject(noFile)
  expect(await program.failure('write', { path: 'pipe', content: 'x' })).toMatchObject(noFile)
  rmSync(pipe)
  await program.ask('write', { path: 'pipe', content: 'x' })
  expect(readFileSync(pipe, 'utf8')).toBe('x')
  // Also where nothing is yet that mounts could guard.
  expect(await program.failure('write', { path: '.git/hooks/pre-commit', content: 'x' })).toMatchObject({
    code: 'DENIED',
    what: expect.stringContaining('protected'),
  })
  expect(existsSync(join(place.project, '.git'))).toBe(false)
  expect(await program.failure('delete', { path: 'new' })).toMatchObject({ code: 'FILE_REFUSED' })
  await program.ask('delete', { path: 'new', options: { recursive: true } })
  expect(existsSync(join(place.project, 'new'))).toBe(false)
  // A link that the sandbox made leads inside the sandbox, not on the host.
  const secret = place.file(join(place.home, 'secret.txt'), 'the host’s own')
  symlinkSync(secret, join(place.project, 'link'))
  expect((await program.failure('read', { path: 'link' })).code).toMatch(/NOT_FOUND|DENIED|FILE_REFUSED/)
})

claim(
  'a file of the host is there while it is granted, and gone when it is revoked',
  async (program, place) => {
    const notes = place.file(join(place.home, 'notes/today.txt'), 'buy milk')
    await program.ask('start', { project: place.project })
    const refused = await program.failure('read', { path: notes })
    expect(refused).toMatchObject({
      code: 'DENIED',
      retry: false,
      permission: `pen grant ${notes} --for 1h`,
      isOurs: true,
    })
    await program.ask('grant', { path: notes })
    expect(await program.ask('read', { path: notes })).toBe('buy milk')
    expect((await program.failure('write', { path: notes, content: 'x' })).code).toMatch(
      /DENIED|FILE_REFUSED/,
    )
    expect(readFileSync(notes, 'utf8')).toBe('buy milk')
    await program.ask('grant', { path: notes, options: { rw: true, for: '5m' } })
    await program.ask('write', { path: notes, content: 'milk is bought' })
    expect(readFileSync(notes, 'utf8')).toBe('milk is bought')
    await program.ask('revoke', { path: notes })
    expect(await program.failure('read', { path: notes })).toMatchObject({ code: 'DENIED' })
    expect(place.audit().filter(({ kind }) => kind === 'file-denied').length).toBeGreaterThanOrEqual(2)
  },
)

claim(
  'a permission that is asked for is given by the user’s own command, and by nothing else',
  async (program, place) => {
    const notes = place.file(join(place.home, 'notes.txt'), 'x')
    await program.ask('start', { project: place.project })
    const asked = await program.ask('request', { wanted: { path: notes } })
    expect(asked).toEqual({
      granted: false,
      permission: `pen grant ${notes} --for 1h`,
      why: expect.any(String),
    })
    const waiting = program.ask('request', { wanted: { path: notes }, options: { wait: 20_000 } })
    expect(place.pen('grant', notes, '--for', '1m')).toMatchObject({ code: 0 })
    expect(await waiting).toMatchObject({ granted: true })
    // This sandbox has no network: nobody can be asked.
    expect(await program.ask('request', { wanted: { host: 'a.example:443' } })).toMatchObject({
      granted: false,
    })
    expect(await program.failure('allow', { target: 'a.example:443' })).toMatchObject({ code: 'STATE' })
  },
)

claim('a sandbox ends with the program that started it, also when that is killed', async (program, place) => {
  await program.ask('start', { project: place.project })
  await program.ask('leave', { command: ['sleep', '100'] })
  expect(place.isRunning()).toBe(true)
  await program.kill()
  await until(() => !place.isRunning(), place.pen('status').said)
})

claim(
  'a sandbox that runs already is joined and left running; another policy is refused',
  async (program, place) => {
    expect(place.pen('start', '--detach')).toMatchObject({ code: 0 })
    expect(await program.ask('start', { project: place.project })).toMatchObject({ joined: true })
    expect(await program.exec('echo here')).toMatchObject({ stdout: 'here\n' })
    await program.ask('dispose')
    expect(place.isRunning()).toBe(true)
    const other = { project: place.project, policy: { profile: 'strict' } }
    expect(await program.failure('start', other)).toMatchObject({ code: 'STATE', retry: true })
    expect(place.pen('stop')).toMatchObject({ code: 0 })
    expect(await program.ask('start', other)).toMatchObject({ joined: false })
    // The policy is in force: in this profile the project is read-only.
    expect((await program.exec('echo x > file')).exitCode).not.toBe(0)
    expect(existsSync(join(place.project, 'file'))).toBe(false)
  },
)

claim('what cannot be started says what, where and how to go on', async (program, place) => {
  const wrong = { project: place.project, policy: { limits: { memory: 'much' } } }
  expect(await program.failure('start', wrong)).toMatchObject({
    code: 'CONFIG_VALUE',
    isOurs: true,
    retry: false,
  })
  expect(await program.failure('start', { project: join(place.project, 'absent') })).toMatchObject({
    code: 'USAGE',
  })
  const file = place.file('a-file', '')
  expect(await program.failure('start', { project: file })).toMatchObject({ code: 'USAGE' })
  // A directory above is known to pen: the program does not get more than it named.
  place.file('below/x', '')
  expect(await program.failure('start', { project: join(place.project, 'below') })).toMatchObject({
    code: 'PATH_REFUSED',
  })
  const { code } = await program.failure('start', { project: place.project, backend: 'kubernetes' })
  expect(code).toBe('BACKEND')
  expect(await program.ask('start', { project: place.project })).toMatchObject({ joined: false })
  expect(await program.failure('allow', { target: 'registry.example.com:443' })).toMatchObject({
    code: 'STATE',
    retry: false,
  })
  await program.ask('stop')
  expect(place.isRunning()).toBe(false)
  expect(place.audit().some(({ kind }) => kind === 'run-end')).toBe(true)
  expect(await program.failure('exec', { command: 'true' })).toMatchObject({ code: 'ENDED', retry: true })
  expect((await program.ask('events')).map(({ name }) => name)).toContain('end')
})

claim(
  'a limit that ends the sandbox is the result of the command that reached it',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    const hungry = await program.exec(['python3', '-c', 'x = b"x" * (1 << 30); import time; time.sleep(20)'])
    expect(hungry).toMatchObject({ limit: { limit: 'memory', reason: 'killed' } })
    expect(hungry.exitCode).not.toBe(0)
    const names = (await program.ask('events')).map(({ name }) => name)
    expect(names).toContain('limit')
  },
  { ...OFFLINE, limits: { memory: '256MiB' } },
)
