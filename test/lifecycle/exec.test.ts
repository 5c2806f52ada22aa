import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PEN } from '../conformance/launcher.ts'
import { lives, until } from '../until.ts'
import { lifecycleTest, type ProjectSandbox, START } from './project-sandbox.ts'

/** Host processes of the sandbox, by a word of their command line. */
function inside(word: string): number[] {
  const found = Bun.spawnSync(['pgrep', '-f', word]).stdout.toString()
  return found.split('\n').filter(Boolean).map(Number).filter(lives)
}

/** A word that no other process of the machine has. */
const unique = (here: ProjectSandbox): string =>
  `7${here.box.root.replaceAll(/[^0-9]/g, '').slice(-4)}${process.pid}`

/** Waits in the project until the test makes this file. */
const UNTIL_GO = 'until [ -e go ]; do sleep 0.05; done'

lifecycleTest('P14 exit codes are right: of commands, signals, and what cannot be started', async here => {
  await here.pen(...START)
  expect(await here.sh('exit 0')).toMatchObject({ code: 0 })
  expect(await here.sh('exit 254')).toMatchObject({ code: 254 })
  expect(await here.sh('kill -TERM $$')).toMatchObject({ code: 143 })
  expect(await here.sh('kill -KILL $$')).toMatchObject({ code: 137 })
  const absent = await here.pen('exec', '--', 'no-such-command')
  expect(absent).toMatchObject({ code: 127 })
  expect(absent.stderr).toContain('no-such-command')
  expect(await here.pen('exec', '--', '/etc/hosts')).toMatchObject({ code: 126 })
})

lifecycleTest('P14 a timeout is exit 124, and ends everything that the command started', async here => {
  await here.pen(...START)
  const word = unique(here)
  const script = `trap "" TERM; (trap "" TERM; setsid sleep ${word} &) ; echo up; sleep ${word}`
  const ended = await here.start(['exec', '--timeout', '500ms', '--', '/bin/sh', '-c', script]).ended
  expect(ended).toMatchObject({ code: 124, stdout: 'up\n' })
  expect(ended.stderr).toContain('timed out after 500ms')
  await until(() => inside(`sleep ${word}`).length === 0, 2000)
  expect(await here.sh('echo on')).toMatchObject({ code: 0, stdout: 'on\n' })
})

lifecycleTest(
  'P14 a timeout also ends what left the command’s session, when the command itself ends at once',
  async here => {
    await here.pen(...START)
    const word = unique(here)
    const script = `(setsid sleep ${word} &); echo up; sleep ${word}`
    const ended = await here.start(['exec', '--timeout', '300ms', '--', '/bin/sh', '-c', script]).ended
    expect(ended).toMatchObject({ code: 124 })
    await until(() => inside(`sleep ${word}`).length === 0, 2000)
    // A command that ends by itself may leave something running, such as a server.
    await here.sh(`setsid sleep ${word} >/dev/null 2>&1 &`)
    expect(inside(`sleep ${word}`).length).toBeGreaterThan(0)
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P14 a command that SIGSTOPs everything is ended by its timeout; the sandbox goes on',
  async here => {
    await here.pen(...START)
    const stopping = 'kill -STOP 1; kill -KILL 1; kill -STOP -1; sleep 60'
    const stopped = here.start(['exec', '--timeout', '500ms', '--', '/bin/sh', '-c', stopping])
    expect(await stopped.ended).toMatchObject({ code: 124 })
    expect(await here.sh('echo on')).toMatchObject({ code: 0, stdout: 'on\n' })
  },
)

lifecycleTest('P14 a client that is killed ends its command, and no other', async here => {
  await here.pen(...START)
  const word = unique(here)
  const victim = here.start(['exec', '--', '/bin/sh', '-c', `trap "" HUP; echo up; sleep ${word}`])
  const other = here.start(['exec', '--', '/bin/sh', '-c', `echo up; ${UNTIL_GO}; echo done`])
  await Promise.all([victim.printed('up'), other.printed('up')])
  victim.child.kill('SIGKILL')
  await until(() => inside(`sleep ${word}`).length === 0, 2500)
  here.box.file('go', '')
  expect(await other.ended).toMatchObject({ code: 0, stdout: 'up\ndone\n' })
})

lifecycleTest(
  'P15 fifty megabytes arrive complete, also with a slow reader, and no other command waits',
  async here => {
    await here.pen(...START)
    const size = 50_000_000
    const script = `"$0" exec -- head -c ${size} /dev/zero | (${UNTIL_GO}; wc -c)`
    const [program = '', ...rest] = [...here.box.launcher.who.become, '/bin/sh', '-c', script, PEN]
    const slow = Bun.spawn([program, ...rest], {
      cwd: here.box.project,
      env: here.box.env(),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await Bun.sleep(300)
    const quick = await here.sh('echo quick')
    expect(quick).toMatchObject({ code: 0, stdout: 'quick\n' })
    expect(quick.ms).toBeLessThan(1500)
    here.box.file('go', '')
    expect((await new Response(slow.stdout).text()).trim()).toBe(String(size))
    // The other direction.
    const counted = await here.start(['exec', '--', 'sha256sum'], { stdin: new Uint8Array(size) }).ended
    const hash = new Bun.CryptoHasher('sha256').update(new Uint8Array(size)).digest('hex')
    expect(counted.stdout).toStartWith(hash)
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P15 only what was given crosses: variables by name, input and three descriptors',
  async here => {
    await here.pen(...START)
    const env = { SECRET: 'host', WANTED: 'mine' }
    const shown = await here.start(
      ['exec', '--env', 'WANTED', '--env', 'SET=a b', '--', '/bin/sh', '-c', 'env; ls /proc/self/fd | wc -w'],
      { env },
    ).ended
    expect(shown.stdout).toContain('WANTED=mine\n')
    expect(shown.stdout).toContain('SET=a b\n')
    expect(shown.stdout).not.toContain('SECRET')
    // ls itself opens the directory.
    expect(shown.stdout).toEndWith('\n4\n')
    expect(await here.start(['exec', '--', 'cat'], { stdin: 'through\n' }).ended).toMatchObject({
      stdout: 'through\n',
    })
    expect(await here.pen('exec', '--env', 'NOT_SET_ANYWHERE', '--', 'true')).toMatchObject({ code: 2 })
  },
)

/** The output of a host shell that runs pen as `$0`. */
function inShell(here: ProjectSandbox, script: string): string {
  const [program = '', ...rest] = [...here.box.launcher.who.become, '/bin/bash', '-c', script, PEN]
  const options = { cwd: here.box.project, env: here.box.env(), stdio: ['ignore', 'pipe', 'pipe'] as const }
  const ran = Bun.spawnSync([program, ...rest], { ...options, timeout: 10_000 } as object)
  return `${ran.stdout}${ran.stderr}`
}

lifecycleTest(
  'P14 a pipeline whose reader is gone ends the command, as it ends others',
  async here => {
    await here.pen(...START)
    expect(inShell(here, '"$0" exec -- yes | head -1; echo $PIPESTATUS')).toBe('y\n141\n')
    await until(() => here.audit().some(({ kind }) => kind === 'exec-end'))
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P14 output that the disk rejects is a failure, and ends the command',
  async here => {
    await here.pen(...START)
    const wrote = '"$0" exec -- head -c 100000 /dev/zero'
    expect(inShell(here, `${wrote} > whole; echo $?; wc -c < whole`)).toBe('0\n100000\n')
    const lost = inShell(here, `${wrote} > /dev/full; echo $?`)
    expect(lost).toStartWith('125\n')
    expect(lost).toContain('STATE: cannot write the output of the command (ENOSPC)')
    expect(inShell(here, '"$0" exec -- yes > /dev/full; echo $?')).toStartWith('125\n')
    const ends = () => here.audit().filter(({ kind }) => kind === 'exec-end')
    await until(() => ends().length === 3)
    expect(ends().at(-1)).toMatchObject({ reason: 'SIGPIPE' })
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P14 signals to pen exec reach the command',
  async here => {
    await here.pen(...START)
    const script =
      'trap "echo term; exit 9" TERM; trap "echo usr1" USR1; echo up; while :; do sleep 0.05; done'
    const command = here.start(['exec', '--', '/bin/sh', '-c', script])
    await command.printed('up')
    command.child.kill('SIGUSR1')
    await command.printed('usr1')
    command.child.kill('SIGTERM')
    expect(await command.ended).toMatchObject({ code: 9, stdout: 'up\nusr1\nterm\n' })
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P14 a stopped command continues when pen exec gets SIGCONT',
  async here => {
    await here.pen(...START)
    const word = unique(here)
    const script = `echo up; kill -STOP $$; echo on; exit 6 # ${word}`
    const command = here.start(['exec', '--', '/bin/sh', '-c', script])
    const isStopped = (pid: number) => /^State:\tT/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    await until(() => inside(word).some(isStopped))
    command.child.kill('SIGCONT')
    expect(await command.ended).toMatchObject({ code: 6, stdout: 'up\non\n' })
  },
  { users: 'ordinary' },
)

lifecycleTest('P14 stop asks commands first, and kills what does not end within two seconds', async here => {
  await here.pen(...START)
  const polite = here.start([
    'exec',
    '--',
    '/bin/sh',
    '-c',
    'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done',
  ])
  const deaf = here.start([
    'exec',
    '--',
    '/bin/sh',
    '-c',
    'trap "" TERM HUP; echo up; while :; do sleep 0.05; done',
  ])
  await Promise.all([polite.printed('up'), deaf.printed('up')])
  const stopped = await here.pen('stop')
  expect(stopped).toMatchObject({ code: 0 })
  expect(stopped.ms).toBeLessThan(3000)
  expect(await polite.ended).toMatchObject({ code: 0, stdout: 'up\nbye\n' })
  expect((await deaf.ended).code).toBe(137)
})

lifecycleTest(
  'P11 stop prints what the end of pen run prints',
  async here => {
    await here.pen(...START)
    await here.sh('echo "{}" >package.json')
    const { code, stderr } = await here.pen('stop')
    expect([code, stderr]).toEqual([0, expect.stringContaining('run by your machine when you build')])
    expect(stderr).toContain('package.json')
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P12 a command has no capability, no new privilege and the filter of the sandbox',
  async here => {
    await here.pen(...START)
    const { stdout } = await here.sh('grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; id -u')
    expect(stdout).toMatch(/CapEff:\t0+\n/)
    expect(stdout).toMatch(/CapPrm:\t0+\n/)
    expect(stdout).toContain('NoNewPrivs:\t1\n')
    expect(stdout).toContain('Seccomp:\t2\n')
    expect(stdout).not.toEndWith('\n0\n')
    expect(await here.sh('cat ~/.pen/* /proc/1/environ 2>/dev/null | wc -c')).toMatchObject({ code: 0 })
  },
)

lifecycleTest('P5 files that a command makes belong to the user', async here => {
  await here.pen(...START)
  await here.sh('echo made > made.txt')
  expect(readFileSync(join(here.box.project, 'made.txt'), 'utf8')).toBe('made\n')
  expect(here.box.host('stat -c %u made.txt').trim()).toBe(String(here.box.launcher.who.uid))
})

lifecycleTest(
  'P13 a command that meets a limit of a running sandbox says which, and how to raise it',
  async here => {
    await here.pen(...START, '--limit', 'pids=20')
    const forks = (count: number) =>
      here.sh(`(for i in $(seq ${count}); do sleep 1 & done); sleep 1; test ${count} -lt 10`)
    const over = await forks(60)
    expect(over.code).not.toBe(0)
    expect(over.stderr).toContain('limits.pids (20) was reached')
    expect(over.stderr).toContain('--limit pids=40')
    const under = await forks(5)
    expect([under.code, under.stderr]).toEqual([0, ''])
  },
)
