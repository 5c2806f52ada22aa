import { expect } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Stopwatch } from '../stopwatch.ts'
import { conformance } from './conformance.ts'
import { adoptOrphans, descendants, untilAlone } from './descendants.ts'
import { SLOWER, triesMachines } from './launcher.ts'

adoptOrphans()
const pids = () => new Set(descendants().map(({ pid }) => pid))

/** Ways to stay alive: each as a shell line that never ends by itself. */
const STUBBORN: Readonly<Record<string, string>> = {
  'ignores every signal': 'trap "" TERM INT HUP QUIT USR1; echo up; while :; do sleep 1; done',
  'forks into a new session': 'setsid sh -c "trap \\"\\" TERM; echo up; sleep 70" & wait',
  'forks twice and loses its parent':
    '(setsid sh -c "(trap \\"\\" TERM HUP; echo up; exec sleep 71) & exit" &) ; sleep 72',
  'daemonizes and holds stdout': 'nohup setsid sh -c "echo up; exec sleep 73" 2>/dev/null & sleep 74',
  'stops itself': 'sh -c "echo up; kill -STOP \\$\\$" & wait; sleep 75',
  'waits for a pipe that is never opened': 'mkfifo p; echo up; cat < p',
  'forks without an end, a few at a time': 'echo up; while :; do sleep 0.1 & sleep 0.1 & wait; done',
}

conformance(
  'P14 two seconds after SIGTERM nothing is left of a program that ignores it',
  async box => {
    const known = pids()
    const codes = Object.entries(STUBBORN).map(async ([what, script], i) => {
      const cwd = box.directory(join(box.home, `stubborn-${i}`))
      const run = box.start(['/bin/sh', '-c', script], { through: 'exec "$@"', cwd })
      await run.printed('up')
      const watch = new Stopwatch()
      run.child.kill('SIGTERM')
      const { code = 0 } = await run.ended
      expect([what, watch.ms < 2000, code > 128]).toEqual([what, true, true])
    })
    expect((await Promise.all(codes)).length).toBe(7)
    expect(await untilAlone(known, 100)).toEqual([])
  },
  { alone: true },
)

/** In seconds. The start counts too. */
const WALL = SLOWER === 1 ? 0.8 : 12

conformance(
  'P14 the wall time ends everything with 124, and pen says so',
  async box => {
    const known = pids()
    const started = box.start(['/bin/sh', '-c', 'trap "" TERM; (setsid sleep 76 &); echo up; sleep 77'], {
      flags: ['--wall', `${WALL * 1000}ms`],
    })
    await started.printed('up')
    const watch = new Stopwatch()
    const run = await started.ended
    expect([run.code, run.stdout]).toEqual([124, 'up\n'])
    expect(watch.ms).toBeLessThan(WALL * 1000 + 2000)
    expect(run.stderr).toMatch(new RegExp(`limit: .*limits\\.wall is ${WALL} s`))
    expect(await untilAlone(known, 100)).toEqual([])
    expect((await box.sh('exit 5', { flags: ['--wall', '60s'] })).code).toBe(5)
  },
  { alone: true },
)

conformance('P14 a command that is asked to end has time to, and keeps its exit code', async box => {
  // Where QEMU translates, the start of a program may take most of that time.
  const last = triesMachines ? '' : 'sleep 0.3; '
  const run = box.start(
    ['/bin/sh', '-c', `trap "${last}echo saved > file; exit 7" TERM; echo up; while :; do sleep 0.02; done`],
    {
      through: 'exec "$@"',
    },
  )
  await run.printed('up')
  run.child.kill('SIGTERM')
  expect((await run.ended).code).toBe(7)
  expect(readFileSync(join(box.project, 'file'), 'utf8')).toBe('saved\n')
})

conformance('P14 background processes end with the command, at once', async box => {
  const run = box.start([
    '/bin/sh',
    '-c',
    '(while :; do date > tick; sleep 0.02; done) & setsid sleep 78 & echo up; sleep 0.1; exit 4',
  ])
  await run.printed('up')
  const watch = new Stopwatch()
  expect((await run.ended).code).toBe(4)
  expect(watch.ms).toBeLessThan(2000)
  const last = existsSync(join(box.project, 'tick')) ? readFileSync(join(box.project, 'tick'), 'utf8') : ''
  await Bun.sleep(100)
  expect(readFileSync(join(box.project, 'tick'), 'utf8')).toBe(last)
})

conformance(
  'P14 signals to pen reach the command, and signals from inside reach nothing outside',
  async box => {
    const run = box.start(
      [
        '/bin/sh',
        '-c',
        'trap "echo int" INT; trap "echo usr1" USR1; trap "exit 9" HUP; echo up; while :; do sleep 0.02; done',
      ],
      {
        through: 'exec "$@"',
      },
    )
    await run.printed('up')
    run.child.kill('SIGUSR1')
    await run.printed('usr1')
    run.child.kill('SIGINT')
    await run.printed('int')
    run.child.kill('SIGHUP')
    expect((await run.ended).code).toBe(9)
    const { code, stdout } = await box.sh(
      '(kill -9 -1; kill -STOP -1; kill -9 $PPID; kill -9 1; kill -9 0) 2>/dev/null; echo here',
    )
    expect([137, 0]).toContain(code ?? -1)
    expect(['here\n', '']).toContain(stdout)
  },
)

conformance(
  'P14 exit codes are the command’s',
  async box => {
    box.file('plain', 'x')
    box.file('broken', '#!/nowhere/sh\n', 0o755)
    box.file('script', '#!/bin/sh\nexit 6\n', 0o755)
    box.file('bare', 'exit 8\n', 0o755)
    const cases: readonly (readonly [number, readonly string[]])[] = [
      [0, ['true']],
      [3, ['/bin/sh', '-c', 'exit 3']],
      [255, ['/bin/sh', '-c', 'exit 255']],
      [6, ['./script']],
      [8, ['./bare']],
      [126, ['./plain']],
      [126, ['.']],
      [126, ['./broken']],
      [127, ['no-such-program']],
      [127, ['./absent']],
      [127, ['']],
      ...[9, 11, 15].map(n => [128 + n, ['/bin/sh', '-c', `ulimit -c 0; kill -${n} $$`]] as const),
    ]
    for (const [code, command] of cases)
      expect([command, (await box.run(command)).code]).toEqual([command, code])
  },
  { timeout: 120_000 },
)

conformance('P14 a reader that closes ends the writer at once, without a message', async box => {
  const { stdout, stderr } = await box.run(['yes'], {
    through: `{ "$@"; echo "code $?" >&2; echo "ended $(date +%s%3N)" >&2; } |
      { head -1; exec <&-; echo "gone $(date +%s%3N)" >&2; }`,
  })
  expect(stdout).toBe('y\n')
  const times = /^(gone|ended) (\d+)\n/gm
  expect(stderr.replace(/^pen: (backend|note: no guest runs on KVM).*\n/gm, '').replaceAll(times, '')).toBe(
    'code 141\n',
  )
  const at = new Map([...stderr.matchAll(times)].map(([, what, ms]) => [what, Number(ms)]))
  expect((at.get('ended') ?? Number.NaN) - (at.get('gone') ?? Number.NaN)).toBeLessThan(3000)
})

conformance('P14 thousands of orphans are reaped', async box => {
  const { stdout } = await box.run([
    '/usr/bin/python3',
    '-c',
    `
import os, time
for i in range(1000):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
def zombies():
    for p in os.listdir('/proc'):
        try: yield p.isdigit() and ') Z ' in open('/proc/%s/stat' % p).read()
        except OSError: pass
late = time.time() + 10
while sum(zombies()) >= 50 and time.time() < late: time.sleep(0.05)
print(sum(zombies()) < 50)`,
  ])
  expect(stdout).toBe('True\n')
})

conformance('P14 the exit code is right also when pen starts with SIGCHLD ignored', async box => {
  const through = `exec python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$@"`
  expect((await box.sh('exit 7', { through })).code).toBe(7)
  expect((await box.sh('kill -9 $$', { through })).code).toBe(137)
})

conformance('P3 Ctrl-Z does not stop pen, which goes on moving what is planted, and says so', async box => {
  const plant = 'echo up; until [ -e go ]; do sleep 0.1; done; echo evil > .npmrc; sleep 2; ls -A'
  const run = box.start(['/bin/sh', '-c', plant], { through: 'exec "$@"' })
  await run.printed('up')
  run.child.kill('SIGTSTP')
  await Bun.sleep(100)
  expect(readFileSync(`/proc/${run.child.pid}/stat`, 'utf8')).not.toContain(') T ')
  writeFileSync(join(box.project, 'go'), '')
  const { stdout, stderr } = await run.ended
  expect([stdout, stderr]).toEqual(['up\ngo\n', expect.stringContaining('Ctrl-Z does nothing here')])
})
