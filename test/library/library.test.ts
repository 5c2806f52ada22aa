/** The library as programs use it: on Node and on Bun, in its own process, as root and as an ordinary user. */
import { expect } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Stopwatch } from '../stopwatch.ts'
import { until } from '../until.ts'
import { claim, nothingLeft, OFFLINE } from './claim.ts'

claim(
  'a command has its exit code, separate streams, and its own input, directory and variables',
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
      moreDenials: 0,
      truncated: false,
    })
    const options = { stdin: 'typed', cwd: 'below', env: { COLOUR: 'green' } }
    expect(await program.exec('pwd; cat; echo; echo $COLOUR', options)).toMatchObject({
      stdout: `${place.project}/below\ntyped\ngreen\n`,
    })
    // No shell reads these words.
    expect(await program.exec(['echo', '$HOME', ';', 'false'])).toMatchObject({ stdout: '$HOME ; false\n' })
    expect(await program.exec(['kill', '-9', '0'])).toMatchObject({ exitCode: 137 })
    expect(await program.exec(['absent-program'])).toMatchObject({
      exitCode: 127,
      stderr: 'pen: absent-program was not found in the sandbox\n',
    })
  },
)

claim(
  'a command that times out is ended with all its processes, and its output is kept',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    const watch = new Stopwatch()
    const late = await program.exec('echo partly; (sleep 100; echo > survived) & sleep 100', { timeout: 300 })
    expect(late).toMatchObject({ exitCode: 124, timedOut: true, stdout: 'partly\n' })
    expect(watch.ms).toBeLessThan(5000)
    // A command may end with this exit code by itself.
    expect(await program.exec('exit 124')).toMatchObject({ exitCode: 124, timedOut: false })
    await nothingLeft(program)
    expect(await program.failure('exec', { command: 'true', options: { timeout: 0 } })).toMatchObject({
      code: 'USAGE',
    })
  },
)

claim('endless output is kept within its limit, from both ends', async (program, place) => {
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
  // Until the server listens, forwarded connections are closed at once.
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

claim(
  'a listener that throws ends its command, and the call fails with its error',
  async (program, place) => {
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
  },
)

claim('forty commands at once each get their own output', async (program, place) => {
  await program.ask('start', { project: place.project })
  const results = await program.ask('many', { command: 'echo $$; sleep 0.05', count: 40 })
  expect(new Set(results.map(({ stdout }) => stdout)).size).toBe(40)
})

claim('files are read, written, listed and searched as the sandbox sees them', async (program, place) => {
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
    tooLong: [],
  })
  expect(await program.failure('read', { path: 'src/absent' })).toMatchObject({
    code: 'NOT_FOUND',
    retry: false,
  })
  expect(await program.failure('read', { path: 'src' })).toMatchObject({ code: 'FILE_REFUSED' })
  // Opening a pipe would block until the other end opens.
  const pipe = join(place.project, 'pipe')
  Bun.spawnSync(['mkfifo', '-m', '666', pipe])
  const noFile = { code: 'FILE_REFUSED', what: expect.stringContaining('is not a file') }
  expect(await program.failure('read', { path: 'pipe' })).toMatchObject(noFile)
  expect(await program.failure('write', { path: 'pipe', content: 'x' })).toMatchObject(noFile)
  rmSync(pipe)
  await program.ask('write', { path: 'pipe', content: 'x' })
  expect(readFileSync(pipe, 'utf8')).toBe('x')
  // Also where nothing exists yet for a mount to protect.
  expect(await program.failure('write', { path: '.git/hooks/pre-commit', content: 'x' })).toMatchObject({
    code: 'DENIED',
    what: expect.stringContaining('protected'),
  })
  expect(existsSync(join(place.project, '.git'))).toBe(false)
  expect(await program.failure('delete', { path: 'new' })).toMatchObject({ code: 'FILE_REFUSED' })
  await program.ask('delete', { path: 'new', options: { recursive: true } })
  expect(existsSync(join(place.project, 'new'))).toBe(false)
  // A link that the sandbox made resolves inside the sandbox, not on the host.
  const secret = place.file(join(place.home, 'secret.txt'), 'the host’s own')
  symlinkSync(secret, join(place.project, 'link'))
  expect((await program.failure('read', { path: 'link' })).code).toMatch(/NOT_FOUND|DENIED|FILE_REFUSED/)
})

claim('a host file is there while it is granted, and gone when it is revoked', async (program, place) => {
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
  expect((await program.failure('write', { path: notes, content: 'x' })).code).toMatch(/DENIED|FILE_REFUSED/)
  expect(readFileSync(notes, 'utf8')).toBe('buy milk')
  await program.ask('grant', { path: notes, options: { rw: true, for: '5m' } })
  await program.ask('write', { path: notes, content: 'milk is bought' })
  expect(readFileSync(notes, 'utf8')).toBe('milk is bought')
  await program.ask('revoke', { path: notes })
  expect(await program.failure('read', { path: notes })).toMatchObject({ code: 'DENIED' })
  expect(place.audit().filter(({ kind }) => kind === 'file-denied').length).toBeGreaterThanOrEqual(2)
})

claim(
  'a requested permission is given by the user’s own command, and by nothing else',
  async (program, place) => {
    const notes = place.file(join(place.home, 'notes.txt'), 'x')
    expect(await program.ask('start', { project: place.project, name: 'box' })).toMatchObject({
      id: expect.stringMatching(/-box-[0-9a-f]{16}$/),
    })
    // A grant is for one sandbox, and this one is for the sandbox without a name.
    expect(place.pen('grant', notes)).toMatchObject({ code: 0 })
    const asked = await program.ask('request', { wanted: { path: notes } })
    expect(asked).toEqual({
      granted: false,
      permission: `pen grant --name box ${notes} --for 1h`,
      why: expect.any(String),
    })
    const waiting = program.ask('request', { wanted: { path: notes }, options: { wait: 20_000 } })
    expect(place.pen('grant', '--name', 'box', notes, '--for', '1m')).toMatchObject({ code: 0 })
    expect(await waiting).toMatchObject({ granted: true })
    // This sandbox has no network: there is nothing to ask.
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
  await until(
    () => !place.isRunning(),
    10_000,
    () => place.pen('status').said,
  )
})

claim('a running sandbox is joined and left running; another policy is refused', async (program, place) => {
  expect(place.pen('start', '--detach')).toMatchObject({ code: 0 })
  expect(await program.ask('start', { project: place.project })).toMatchObject({ joined: true })
  expect(await program.exec('echo here')).toMatchObject({ stdout: 'here\n' })
  await program.ask('dispose')
  expect(place.isRunning()).toBe(true)
  const other = { project: place.project, policy: { profile: 'strict' } }
  expect(await program.failure('start', other)).toMatchObject({ code: 'STATE', retry: true })
  expect(place.pen('stop')).toMatchObject({ code: 0 })
  expect(await program.ask('start', other)).toMatchObject({ joined: false })
  // The policy is in effect: in this profile the project is read-only.
  expect((await program.exec('echo x > file')).exitCode).not.toBe(0)
  expect(existsSync(join(place.project, 'file'))).toBe(false)
})

claim(
  'a policy holds for every command while its program lives, also when a limit ended the sandbox',
  async (program, place) => {
    place.file('secret.txt', 'secret')
    const policy = { files: { deny: ['secret.txt'] }, limits: { disk: '20MiB' } }
    await program.ask('start', { project: place.project, policy })
    const died = await program.exec('dd if=/dev/zero of=big bs=1M count=200 2>/dev/null; sleep 30')
    expect(died).toMatchObject({
      exitCode: 137,
      limit: { limit: 'disk', why: expect.stringContaining('limits.disk is 20 MiB') },
    })
    expect(died.limit?.hint).toContain('--limit disk=40MiB')
    rmSync(join(place.project, 'big'), { force: true })
    // From another program of the user.
    const other = place.pen('exec', '--', 'cat', 'secret.txt')
    expect(other.stdout).toBe('')
    expect(other.said).toContain('started again with the flags of its last start: --deny secret.txt')
    // The allowed twin: the policy ends with its program.
    place.pen('stop')
    await program.ask('start', { project: place.project, policy })
    await program.kill()
    await until(() => !place.isRunning())
    expect(place.pen('exec', '--', 'cat', 'secret.txt').stdout).toBe('secret')
  },
)

claim('a start that fails says what, where and how to go on', async (program, place) => {
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
  // pen knows a parent directory: the program does not get more than it named.
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
