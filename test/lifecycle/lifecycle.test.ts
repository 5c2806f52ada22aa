import { expect } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { lives, until } from '../until.ts'
import { lifecycleTest, START, unconfiguredTest } from './project-sandbox.ts'

lifecycleTest(
  'P14 a day: start, status, exec, shell, ls, stats, restart, stop, and nothing runs',
  async here => {
    expect(await here.pen('status')).toMatchObject({ code: 1 })
    expect(await here.pen('stats')).toMatchObject({ code: 1, stdout: expect.stringContaining('not running') })
    expect(JSON.parse((await here.pen('stats', '--json')).stdout)).toEqual({ version: 1, sandboxes: [] })
    expect(await here.pen(...START)).toMatchObject({ code: 0 })
    const status = JSON.parse((await here.pen('status', '--json')).stdout)
    expect(status).toMatchObject({
      running: true,
      backend: 'process',
      workspace: here.box.project,
      executions: 0,
    })
    expect(status.weaker.map(({ name }: { name: string }) => name)).toContain('daemon-user')
    expect(status.pid).toBe(here.supervisor())
    const weaker = async (...words: string[]) =>
      (await here.pen('status', ...words)).stdout.split('\n').filter(line => line.startsWith('  weaker'))
    expect(await weaker()).toEqual([expect.stringContaining('daemon-user (pen status --all)')])
    expect(await weaker('--all')).toHaveLength(status.weaker.length)

    const again = await here.pen(...START)
    expect(again).toMatchObject({ code: 0 })
    expect(again.stdout).toContain('already running')
    expect(again.stderr).not.toContain('with other flags')
    const other = await here.pen(...START, '--limit', 'pids=99')
    expect(other.stdout).toContain('already running')
    expect(other.stderr).toContain('already running with other flags; fix: pen restart')
    expect(here.supervisor()).toBe(status.pid)

    expect(await here.sh('echo kept > /tmp/kept; echo out; echo err >&2; exit 5')).toMatchObject({
      code: 5,
      stdout: 'out\n',
      stderr: 'err\n',
    })
    // The same sandbox the second time, and a shell that reads its commands.
    expect(await here.sh('cat /tmp/kept')).toMatchObject({ code: 0, stdout: 'kept\n' })
    expect(await here.start(['shell'], { stdin: 'cat /tmp/kept; exit 3\n' }).ended).toMatchObject({
      code: 3,
      stdout: 'kept\n',
    })

    const list = JSON.parse((await here.pen('ls', '--json')).stdout).sandboxes
    expect(list).toMatchObject([{ state: 'running', workspace: here.box.project, pid: status.pid }])
    const [stats] = JSON.parse((await here.pen('stats', '--json')).stdout).sandboxes
    expect(stats.processes).toBeGreaterThan(0)
    expect((await here.pen('stats')).stdout).toContain('MEMORY')

    expect(await here.pen('restart')).toMatchObject({ code: 0 })
    expect(here.supervisor()).not.toBe(status.pid)
    expect(lives(status.pid)).toBe(false)
    expect(await here.sh('cat /tmp/kept 2>/dev/null || echo new')).toMatchObject({ stdout: 'new\n' })

    const pid = here.supervisor() ?? 0
    expect(await here.pen('stop')).toMatchObject({ code: 0 })
    expect(lives(pid)).toBe(false)
    expect(here.leftovers()).toEqual([])
    expect((await here.pen('stop')).stdout).toContain('not running')
    expect((await here.pen('ls')).stdout).toMatch(/stopped .*project/)
  },
)

lifecycleTest(
  'P14 exec starts the sandbox when none runs, from any directory of the project',
  async here => {
    const below = here.box.directory(join(here.box.project, 'src/deep'))
    expect(await here.start(['exec', 'pwd'], { cwd: below }).ended).toMatchObject({
      code: 0,
      stdout: `${below}\n`,
    })
    const pid = here.supervisor()
    expect(await here.pen('exec', '--cwd', 'src', '--', 'pwd')).toMatchObject({
      stdout: `${here.box.project}/src\n`,
    })
    expect(await here.start(['status'], { cwd: below }).ended).toMatchObject({ code: 0 })
    expect(here.supervisor()).toBe(pid)
  },
  { users: 'ordinary' },
)

unconfiguredTest(
  'P14 a sandbox of a directory without a config is found from below it',
  async here => {
    const below = here.box.directory(join(here.box.project, 'a/b'))
    await here.pen(...START)
    const status = await here.start(['status', '--json'], { cwd: below }).ended
    expect(JSON.parse(status.stdout)).toMatchObject({ running: true, workspace: here.box.project })
    // Also when the record is gone with the old one: the same sandbox comes back.
    expect(await here.start(['restart'], { cwd: below }).ended).toMatchObject({ code: 0 })
    expect(JSON.parse((await here.pen('status', '--json')).stdout).workspace).toBe(here.box.project)
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P19 twenty starts at once make one sandbox, and all succeed',
  async here => {
    const starts = await Promise.all(Array.from({ length: 20 }, () => here.pen(...START)))
    expect(starts.map(({ code }) => code)).toEqual(Array.from({ length: 20 }, () => 0))
    expect(starts.filter(({ stdout }) => stdout.includes('already running'))).toHaveLength(19)
    const starters = here.audit().filter(({ kind }) => kind === 'run-start')
    expect(starters).toHaveLength(1)
    await until(
      () => here.supervisors().length === 1,
      10_000,
      () => here.supervisors().join(' '),
    )
    expect(here.supervisors()).toEqual([here.supervisor() ?? 0])
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P20 a start that fails says why, with its exit code, and leaves nothing',
  async here => {
    await here.pen(...START)
    await here.pen('stop')
    const refused = await here.pen('start', '--detach', '--backend', 'process', '--allow', 'a..b:1')
    const same = await here.pen('run', '--backend', 'process', '--allow', 'a..b:1', '--', 'true')
    expect(refused.code).toBe(same.code)
    expect(refused.stderr).toBe(same.stderr)
    expect(await here.pen('status')).toMatchObject({ code: 1 })
    expect(here.leftovers()).toEqual([])
    await until(() => here.supervisors().length === 0)
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P13 the wall time of a running sandbox ends it, and is reported',
  async here => {
    await here.pen(...START, '--wall', '1s')
    const pid = here.supervisor() ?? 0
    const command = here.start(['exec', '--', 'sleep', '60'])
    const ended = await command.ended
    expect(ended.code).toBeGreaterThan(128)
    expect(ended.stderr).toContain('limits.wall is 1 s; to raise it: --limit wall=2s')
    await until(() => !lives(pid))
    expect(here.leftovers()).toEqual([])
    expect(here.audit()).toContainEqual(expect.objectContaining({ kind: 'limit-hit', limit: 'wall' }))
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P18 each command is in the audit when it begins and when it ends',
  async here => {
    await here.pen(...START)
    await here.sh('exit 4')
    await here.pen('exec', '--', '/bin/echo', 'x'.repeat(5000))
    const records = here.audit().filter(({ kind }) => String(kind).startsWith('exec-'))
    expect(records).toMatchObject([
      { kind: 'exec-start', execution: 1, command: ['/bin/sh', '-c', 'exit 4'], cwd: here.box.project },
      { kind: 'exec-end', execution: 1, exitCode: 4 },
      { kind: 'exec-start', execution: 2 },
      { kind: 'exec-end', execution: 2, exitCode: 0 },
    ])
    expect(JSON.stringify(records).length).toBeLessThan(3000)
    expect((await here.pen('logs', '--all')).stdout).toContain('started: /bin/sh -c "exit 4"')
  },
  { users: 'ordinary' },
)

lifecycleTest('P4 rm removes the sandbox and leaves the project; volumes go only with a flag', async here => {
  here.box.file('kept.txt', 'mine')
  await here.pen(...START)
  const pid = here.supervisor() ?? 0
  const { stateDir } = here
  mkdirSync(join(stateDir, 'volumes/cache'), { recursive: true })
  writeFileSync(join(stateDir, 'volumes/cache/x'), 'x')
  expect(await here.pen('rm')).toMatchObject({ code: 2 })
  expect(lives(pid)).toBe(true)
  expect(await here.pen('rm', '--yes')).toMatchObject({ code: 0 })
  expect(lives(pid)).toBe(false)
  expect(readdirSync(stateDir)).toEqual(['volumes'])
  expect(await here.pen('rm', '--yes', '--volumes')).toMatchObject({ code: 0 })
  expect(statSync(stateDir, { throwIfNoEntry: false })).toBeUndefined()
  expect(readFileSync(join(here.box.project, 'kept.txt'), 'utf8')).toBe('mine')
})

lifecycleTest(
  'P20 a sandbox is found by its name in pen ls, from anywhere, also when its project is gone',
  async here => {
    await here.pen(...START)
    const id = basename(here.stateDir)
    const short = id.slice(0, id.lastIndexOf('-'))
    const cwd = here.box.directory(join(here.box.home, 'elsewhere'))
    const pen = (...words: string[]) => here.start(words, { cwd }).ended
    expect((await pen('status')).stdout).toStartWith('elsewhere-')
    expect(await pen('status', id)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${id}: running`),
    })
    for (const verb of ['stop', 'status', 'rm'])
      expect((await pen('__complete', '--', verb, '')).stdout).toBe(`words\n${id}\t${here.box.project}\n`)
    const wrong = await pen('stop', `${id.slice(0, -1)}x`)
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining(`did you mean ${id}?`)])
    expect((await pen('stop', '../..')).code).toBe(2)
    expect(await pen('stop', short)).toMatchObject({ code: 0, stdout: `${id}: stopped\n` })
    expect((await pen('__complete', '--', 'stop', '')).stdout).toBe('words\n')
    expect(JSON.parse((await pen('gc', '--json')).stdout).abandoned).toEqual([])
    rmSync(here.box.project, { recursive: true })
    const listed = await pen('gc')
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(`fix: pen rm ${id}`) })
    expect(existsSync(here.stateDir)).toBe(true)
    expect(await pen('rm', id, '--yes', '--volumes')).toMatchObject({ code: 0, stdout: `${id}: removed\n` })
    expect(existsSync(here.stateDir)).toBe(false)
    mkdirSync(here.box.project)
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P16 start and its related verbs do not work inside a sandbox',
  async here => {
    const verbs = ['start', 'stop', 'restart', 'status', 'shell', 'ls', 'stats', 'rm', 'gc']
    for (const verb of verbs) {
      const refused = await here.start([verb], { env: { AGENT_IN_SANDBOX: '1' } }).ended
      expect([verb, refused.code]).toEqual([verb, 125])
      expect(refused.stderr).toContain('INSIDE_SANDBOX')
    }
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P14 a restart keeps the flags of the start, and takes others when they are given',
  async here => {
    await here.pen(...START, '--env', 'FLAG=first')
    expect(await here.sh('echo $FLAG')).toMatchObject({ stdout: 'first\n' })
    await here.pen('restart')
    expect(await here.sh('echo $FLAG')).toMatchObject({ stdout: 'first\n' })
    const joined = await here.pen('start', '--detach', '--env', 'FLAG=second')
    expect(joined.stderr).toContain('fix: pen restart')
    expect(await here.sh('echo $FLAG')).toMatchObject({ stdout: 'first\n' })
    await here.pen('restart', '--env', 'FLAG=second')
    expect(await here.sh('echo $FLAG')).toMatchObject({ stdout: 'second\n' })
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P6 a running sandbox has the gateway, which refuses, counts, and applies changes at once',
  async here => {
    const config = '{ "version": 1, "profile": "coding", "backend": "process" }'
    here.configure(config)
    await here.pen('start', '--detach')
    expect(JSON.parse((await here.pen('status', '--json')).stdout)).toMatchObject({ gateway: 'answers' })
    const ask = () => here.sh('curl -sS -m 5 http://refused.example.com/ 2>&1')
    expect((await ask()).stdout).toContain('pen allow')
    const [stats] = JSON.parse((await here.pen('stats', '--json')).stdout).sandboxes
    expect(stats.network).toMatchObject({ denied: 1, allowed: 0 })
    expect(here.audit()).toContainEqual(
      expect.objectContaining({ kind: 'connection-denied', name: 'refused.example.com' }),
    )
    expect(await here.pen('allow', 'refused.example.com:80')).toMatchObject({ code: 0 })
    await until(() => here.audit().some(({ kind }) => kind === 'policy-changed'))
  },
)
