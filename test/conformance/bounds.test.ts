import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Box, quote } from './box.ts'
import { conformance } from './conformance.ts'
import { isRoot, PEN, type Ran, type RunOptions } from './launcher.ts'
import { events, limited, limitNotes } from './limit-events.ts'

/** Holds this many MiB in a way that the limit must see: long enough for a busy machine to see it, or briefly. */
const hold = (mib: number, how: string, seconds = 6): string[] => [
  '/usr/bin/python3',
  '-c',
  `import os, time
size = ${mib} << 20
${how}
time.sleep(${seconds}); print('survived')`,
]
const OF_THE_ENGINE = 'test/containers/limits.test.ts shows it on every engine'
const IN_ONE = 'kept = bytearray(b"x") * size'
const WAYS: Readonly<Record<string, string>> = {
  'in one process': IN_ONE,
  'in many processes':
    'for i in range(8):\n  if os.fork() == 0: kept = bytearray(b"x") * (size // 8); time.sleep(9); os._exit(0)',
  'in a file without a name': 'fd = os.memfd_create("x"); os.posix_fallocate(fd, 0, size)',
  'in empty files': 'for i in range(size >> 10): open("/tmp/%d" % i, "w").close()',
  'in files of /tmp and /dev/shm':
    'kept = bytearray(b"x") * (size - (56 << 20))\nfor d in ["/tmp", "/dev/shm"]:\n  open(d + "/x", "wb").write(bytes(28 << 20))',
}

conformance(
  'P13 memory beyond the limit ends the sandbox, wherever it is held; less does not',
  async box => {
    const tries = Object.entries(WAYS).map(async ([way, how], i) => {
      const cwd = box.directory(join(box.home, `way${i}`))
      const over = await box.run(hold(160, how), limited('memory=128MiB', { cwd }))
      expect([way, over.code, over.stdout]).toEqual([way, 137, ''])
      expect([way, limitNotes(over)]).toEqual([
        way,
        [expect.stringMatching(/^the sandbox was stopped: .* limits\.memory is 128 MiB/)],
      ])
      expect([way, events(box, cwd)]).toEqual([way, ['memory killed']])
      const under = await box.run(hold(64, how, 0.5), limited('memory=256MiB', { cwd }))
      expect([
        way,
        under.code,
        under.stdout.trim().split('\n').at(-1),
        limitNotes(under),
        under.code === 0 ? '' : under.stderr,
      ]).toEqual([way, 0, 'survived', [], ''])
      expect([way, events(box, cwd)]).toEqual([way, ['memory killed']])
    })
    await Promise.all(tries)
  },
  { needs: 'hostKernel', once: OF_THE_ENGINE },
)

/**
 * A process at the limit stays until pen has seen it, which takes time on a busy machine. One below it stays
 * briefly.
 */
const STAY = `late = time.time() + 10
while not os.path.exists('seen') and time.time() < late: time.sleep(0.02)`
const SHORTLY = 'time.sleep(0.6)'

async function runUntilSeen(box: Box, command: string[], options: RunOptions): Promise<Ran> {
  const { cwd = box.project } = options
  const run = box.start(command, options)
  let isOver = false
  void run.ended.finally(() => {
    isOver = true
  })
  await run.printed('at the bound')
  while (!isOver && !events(box, cwd).some(event => event.endsWith(' refused'))) await Bun.sleep(10)
  box.file(join(cwd, 'seen'), '')
  return await run.ended
}

/** Starts this many children or threads, which live as long as the program, and prints how many started. */
const many = (count: number, how: 'fork' | 'thread', stay = STAY) => [
  '/usr/bin/python3',
  '-c',
  `import os, threading, time
n = 0
try:
  for i in range(${count}):
    if '${how}' == 'thread': threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    elif os.fork() == 0: time.sleep(60); os._exit(0)
    n += 1
except (OSError, RuntimeError): print('at the bound', flush=True)
${stay}
print(n)`,
]

const countOf = ({ stdout }: Ran): number => Number(stdout.trim().split('\n').at(-1))

conformance(
  'P13 processes and threads beyond the limit are refused, and the sandbox goes on',
  async box => {
    const tries = (['fork', 'thread'] as const).map(async how => {
      const cwd = box.directory(join(box.home, how))
      const over = await runUntilSeen(box, many(200, how), limited('pids=30', { cwd }))
      expect([how, over.code]).toEqual([how, 0])
      expect(countOf(over)).toBeWithin(20, 31)
      expect([how, limitNotes(over)]).toEqual([
        how,
        [expect.stringMatching(/^limits\.pids \(30\) was reached/)],
      ])
      expect([how, events(box, cwd)]).toEqual([how, ['pids refused']])
      const under = await box.run(many(20, how, SHORTLY), limited('pids=30', { cwd }))
      expect([how, under.code, under.stdout, limitNotes(under)]).toEqual([how, 0, '20\n', []])
      expect([how, events(box, cwd)]).toEqual([how, ['pids refused']])
    })
    await Promise.all(tries)
  },
  { needs: 'hostKernel', once: OF_THE_ENGINE },
)

/** A tenth of a CPU: even a busy machine would give more. Without the limit it takes four seconds of two CPUs. */
const SPIN = 'for i in 1 2 3; do timeout 2 sh -c "while :; do :; done" & done; wait; times'

conformance(
  'P13 a CPU share is never exceeded, and priority cannot be raised',
  async box => {
    const spun = await box.sh(SPIN, limited('cpus=0.1'))
    const [, seconds = ''] = /\n0m([\d.]+)s/.exec(spun.stdout) ?? []
    expect(Number(seconds)).toBeWithin(0.02, 1.5)
    expect([spun.code, limitNotes(spun)]).toEqual([
      0,
      [expect.stringMatching(/^limits\.cpus \(0\.1\) slowed the sandbox down for/)],
    ])
    expect(events(box)).toEqual(['cpus throttled'])
    const calm = await box.sh(
      'nice -n -5 true; for try in "chrt -f 1" "chrt -r 1" "ionice -c 1"; do $try true && echo "$try"; done; nice; nice -n 7 nice',
      limited('cpus=2'),
    )
    expect([calm.stdout, limitNotes(calm)]).toEqual(['0\n7\n', []])
    expect(events(box)).toEqual(['cpus throttled'])
  },
  { needs: 'hostKernel' },
)

conformance('P13 a sandbox runs on every CPU that pen may run on', async box => {
  const own = /^Cpus_allowed_list:.*\n/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[0]
  const inside = await box.sh('grep ^Cpus_allowed_list: /proc/self/status')
  expect([inside.code, inside.stdout]).toEqual([0, own ?? ''])
})

const openMany = (count: number, stay = STAY) => [
  '/usr/bin/python3',
  '-c',
  `import os, time
n = 3
try:
  while n < ${count}: os.open('/dev/null', 0); n += 1
except OSError as error: print(error.errno, 'at the bound', flush=True)
${stay}
print(n)`,
]

conformance(
  'P13 open files beyond the limit are refused, in every process',
  async box => {
    const inherited = `ulimit -n 200 || echo no; setsid python3 -c ${quote(openMany(500)[2] ?? '')}`
    const cwd = ['over', 'under', 'child'].map(name => box.directory(join(box.home, name)))
    const [over, under, child] = await Promise.all([
      runUntilSeen(box, openMany(500), limited('files=100', { cwd: cwd[0] ?? '' })),
      box.run(openMany(90, SHORTLY), limited('files=100', { cwd: cwd[1] ?? '' })),
      runUntilSeen(box, ['/bin/sh', '-c', inherited], limited('files=100', { cwd: cwd[2] ?? '' })),
    ])
    expect([over.code, over.stdout]).toEqual([0, '24 at the bound\n100\n'])
    expect(limitNotes(over)).toEqual(['limits.files (100) was reached: a process could open no more'])
    expect(cwd.map(dir => events(box, dir))).toEqual([['files refused'], [], ['files refused']])
    expect([under.code, under.stdout, limitNotes(under)]).toEqual([0, '90\n', []])
    expect(child.stdout).toBe('no\n24 at the bound\n100\n')
  },
  { needs: 'hostKernel' },
)

conformance('P13 wall time is an event too', async box => {
  const { code, ...rest } = await box.sh('sleep 60', { flags: ['--wall', '200ms'] })
  expect([code, limitNotes({ code, ...rest })]).toEqual([
    124,
    ['the sandbox was stopped after 0.2 s, limits.wall is 0.2 s'],
  ])
  expect(events(box)).toEqual(['wall killed'])
  expect((await box.sh('exit 6', { flags: ['--wall', '30s'] })).code).toBe(6)
})

conformance(
  'P13 without a usable cgroup pen says that limits are weaker, and they hold',
  async box => {
    const through = `exec unshare -m sh -c ${quote('umount -Rl /sys/fs/cgroup; exec "$@"')} sh "$@"`
    const memory = await box.run(hold(300, IN_ONE), limited('memory=128MiB', { through }))
    expect([memory.code, memory.stdout]).toEqual([137, ''])
    expect(memory.stderr).toMatch(/weaker: limit-memory, limit-cpus, limit-disk/)
    const pids = await runUntilSeen(box, many(200, 'fork'), limited('pids=30', { through }))
    expect(countOf(pids)).toBeWithin(20, 31)
    const cpus = await box.sh(SPIN, limited('cpus=0.1', { through }))
    expect(Number(/\n0m([\d.]+)s/.exec(cpus.stdout)?.[1])).toBeWithin(0.02, 1.5)
    expect(events(box)).toEqual(['memory killed', 'pids refused', 'cpus throttled'])
    const { stdout } = Bun.spawnSync(
      ['sh', '-c', `${through.replace('exec', '')}`, 'sh', PEN, 'plan', '--offline'],
      { cwd: box.project, env: box.env() },
    )
    expect(stdout.toString()).toMatch(/^weaker: limit-memory: /m)
  },
  { only: ({ who }) => isRoot && who.uid === 0, needs: 'ownCgroups' },
)
