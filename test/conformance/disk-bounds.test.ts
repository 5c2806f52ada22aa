import { expect } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Stopwatch } from '../stopwatch.ts'
import { type Box, quote } from './box.ts'
import { conformance } from './conformance.ts'
import { PEN, type Ran, type RunOptions } from './launcher.ts'
import { events, limited, limitNotes } from './limit-events.ts'

const MIB = 2 ** 20
const GIB = 2 ** 30

/** Bytes that a file occupies, and when it was first seen beyond the limit. */
async function grow(
  box: Box,
  file: string,
  bound: number,
  options: RunOptions,
): Promise<Ran & { over: number; late: number }> {
  const run = box.start(
    [
      '/bin/sh',
      '-c',
      `mkdir -p "$(dirname ${quote(file)})"; head -c 5G /dev/zero > ${quote(file)}; echo survived`,
    ],
    options,
  )
  let passed: Stopwatch | undefined
  const size = () => (statSync(file, { throwIfNoEntry: false })?.blocks ?? 0) * 512
  const timer = setInterval(() => {
    if (size() > bound) passed ??= new Stopwatch()
  }, 10)
  const ran = await run.ended
  clearInterval(timer)
  return { ...ran, over: size() / bound, late: passed?.ms ?? 0 }
}

conformance(
  'P13 5 GiB written under a disk limit of 1 GiB are stopped within two seconds, or 10 % beyond it',
  async box => {
    const { code, stdout, over, late, ...rest } = await grow(
      box,
      join(box.project, 'big'),
      GIB,
      limited('disk=1GiB'),
    )
    expect([code, stdout]).toEqual([137, ''])
    expect(over).toBeGreaterThanOrEqual(1)
    expect(late < 2000 || over <= 1.1).toBe(true)
    expect(limitNotes({ code, stdout, ...rest })).toEqual([
      expect.stringMatching(/^the sandbox was stopped: it wrote 1[.\d]* GiB, limits\.disk is 1 GiB$/),
    ])
    expect(events(box)).toEqual(['disk killed'])
  },
  {
    once: 'the supervisor watches what grows on the host; the next claim shows that it does so here',
    users: 'ordinary',
  },
)

conformance(
  'P13 the disk limit holds in ./output and in a granted place; less is left alone',
  async box => {
    const granted = box.directory(join(box.home, 'granted'))
    const cases = [
      ['output', join(box.project, 'output/big'), ['--limit', 'output=64MiB']],
      ['disk', join(granted, 'big'), ['--limit', 'disk=64MiB', '--write', granted]],
    ] as const
    for (const [limit, file, flags] of cases) {
      const { code, stdout, over, late, ...rest } = await grow(box, file, 64 * MIB, { flags })
      expect([limit, code, stdout]).toEqual([limit, 137, ''])
      expect([limit, late < 2000 || over <= 1.1]).toEqual([limit, true])
      expect(limitNotes({ code, stdout, ...rest })).toEqual([
        expect.stringContaining(`limits.${limit} is 64 MiB`),
      ])
      expect(events(box).at(-1)).toBe(`${limit} killed`)
      const under = await box.sh(`head -c 40m /dev/zero > ${quote(`${file}2`)}; sleep 0.6; echo survived`, {
        flags,
      })
      expect([limit, under.code, under.stdout, limitNotes(under)]).toEqual([limit, 0, 'survived\n', []])
    }
    expect(events(box)).toEqual(['output killed', 'disk killed'])
  },
  { timeout: 120_000 },
)

conformance(
  'P13 a full scratch is reported, even when the program ended at once',
  async box => {
    const tries = ['/tmp', '/home/agent', '/dev/shm', '/var/tmp'].map(async (place, i) => {
      const cwd = box.directory(join(box.home, `place${i}`))
      const over = await box.sh(
        `sleep 0.3; exec head -c 200m /dev/zero > ${place}/big`,
        limited('disk=32MiB', { cwd }),
      )
      expect([place, over.code]).toEqual([place, 1])
      expect(over.stderr).toContain('No space left on device')
      expect(limitNotes(over)).toEqual([
        expect.stringMatching(new RegExp(`^limits\\.disk bounds scratch to .*\\(${place} is full\\)$`)),
      ])
      expect([place, events(box, cwd)]).toEqual([place, ['disk refused']])
    })
    await Promise.all(tries)
    const under = await box.sh(
      'head -c 4m /dev/zero > /tmp/x; head -c 4m /dev/zero > ~/x; sleep 0.5; echo survived',
      limited('disk=32MiB'),
    )
    expect([under.stdout, limitNotes(under), events(box)]).toEqual(['survived\n', [], []])
  },
  { needs: 'hostKernel' },
)

/** Everything at once: children that fork, spin, allocate, open and write. Bounded by the sandbox and by time. */
const STORM = `import os, time
print('up', flush=True)
start = time.time()
def child():
  time.sleep(0.3)
  while time.time() < start + 12: pass
  os._exit(0)
kept = []
while time.time() < start + 12:
  try:
    if os.fork() == 0: child()
  except OSError: pass
  try: kept.append(os.open('/dev/null', 0))
  except OSError: pass
  try: open('f%d' % (len(kept) % 50), 'wb').write(bytes(100000))
  except OSError: pass
  if len(kept) % 10 == 0: os.write(1, b'x' * 60000)`

conformance(
  'P13 under load the supervisor stays small and responsive, and another sandbox works',
  async box => {
    const other = box.directory(join(box.home, 'other'))
    const flags = [
      '--limit',
      'pids=40',
      '--limit',
      'cpus=0.5',
      '--limit',
      'memory=256MiB',
      '--limit',
      'files=64',
    ]
    const storm = box.start(['/usr/bin/python3', '-c', STORM], { through: 'exec "$@"', flags })
    await storm.printed('up')
    for (let i = 0; i < 100 && !events(box).includes('pids refused'); i++) await Bun.sleep(50)
    expect(events(box)).toContain('pids refused')
    const beside = await box.sh('echo well', { cwd: other })
    expect([beside.code, beside.stdout, limitNotes(beside)]).toEqual([0, 'well\n', []])
    expect(beside.ms).toBeLessThan(2000)
    const status = readFileSync(`/proc/${storm.child.pid}/status`, 'utf8')
    expect(Number(/VmHWM:\s*(\d+)/.exec(status)?.[1]) * 1024).toBeLessThan(150 * MIB)
    const watch = new Stopwatch()
    storm.child.kill('SIGTERM')
    const { code } = await storm.ended
    expect([code, watch.ms < 2000]).toEqual([143, true])
  },
  { needs: 'hostKernel' },
)

conformance(
  'P13 a reader that does not read blocks the writer and does not grow pen',
  async box => {
    const run = box.start(['/bin/sh', '-c', 'head -c 1G /dev/zero'], {
      through: `${quote(PEN)} version >/dev/null; "$@" & echo $! >&2; wait`,
    })
    run.child.stdout?.pause()
    await Bun.sleep(800)
    const pens = readdirSync('/proc').filter(
      pid => /^\d+$/.test(pid) && cmdline(pid).includes('head -c 1G') && cmdline(pid).startsWith(PEN),
    )
    expect(pens.length).toBeGreaterThan(0)
    for (const pid of pens)
      expect(
        Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
      ).toBeLessThan(150 * MIB)
    run.child.stdout?.destroy()
    await run.ended
  },
  { users: 'ordinary' },
)

function cmdline(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

conformance(
  'P13 what a sandbox writes into a directory that was moved to the quarantine counts too',
  async box => {
    const fill = (size: string): string =>
      `mkdir .vscode; cd .vscode; until [ ! -e ../.vscode ]; do sleep 0.01; done; for i in $(seq 100); do head -c ${size} /dev/zero > big$i; sleep 0.01; done; sleep 2; echo survived`
    const { code, stdout, ...rest } = await box.sh(fill('3M'), limited('disk=100MiB'))
    expect([code, stdout]).toEqual([137, ''])
    expect(limitNotes({ code, stdout, ...rest })).toEqual([expect.stringContaining('limits.disk is 100 MiB')])
    expect((await box.sh(fill('10k'), limited('disk=100MiB'))).stdout).toBe('survived\n')
  },
  { once: 'the supervisor watches what grows on the host', users: 'ordinary' },
)
