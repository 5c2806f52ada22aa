/** A program that a hostile repository starts in a box, by whatever setting of git, has the limits of the sandbox. */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { runInBox } from '../../src/backend/box.ts'
import type { Step } from '../../src/plan/plan.ts'
import type { GuestPath, HostPath } from '../../src/policy/files/path.ts'
import type { OwnOptions } from '../../src/repository/own-repository.ts'
import { started } from './evil-objects.ts'
import type { TwoRepositories } from './two-repositories.ts'

const MIB = 1024 ** 2

function inBox(two: TwoRepositories, script: string) {
  const own = `${two.host.base}/mounted`
  mkdirSync(own, { recursive: true })
  const bind: Step = { op: 'bind', from: own as HostPath, at: '/own' as GuestPath, mode: 'rw', why: 'git' }
  const limits = { memory: 256 * MIB, pids: 32, disk: 64 * MIB } as OwnOptions['world']['limits']
  return runInBox(
    { ...two.options.world, limits },
    {
      argv: ['/bin/sh', '-c', script],
      env: { PATH: '/usr/bin:/bin' },
      steps: [bind],
      input: Buffer.alloc(0),
      timeoutMs: 20_000,
    },
  )
}

test('a program in a box starts no more processes than the sandbox may', async () => {
  using two = started()
  const script = 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo >/own/$i; sleep 9 & done'
  await inBox(two, script)
  expect(readdirSync(`${two.host.base}/mounted`).length).toBeWithin(10, 50)
})

test('a program in a box gets no more memory than the sandbox has, and 100 MiB work', async () => {
  using two = started()
  expect(await inBox(two, 'head -c 100M /dev/zero | tail -c 1 | wc -c')).toMatchObject({ code: 0 })
  using more = started()
  const { stdout } = await inBox(more, 'head -c 3000M /dev/zero | tail | wc -c')
  expect(stdout.toString()).not.toContain(String(3000 * MIB))
})

test('a program in a box does not fill the disk', async () => {
  using two = started()
  const { stdout } = await inBox(two, 'head -c 3000M /dev/zero >/own/f; echo survived')
  expect(stdout.toString()).not.toContain('survived')
  expect(statSync(`${two.host.base}/mounted/f`).size).toBeLessThan(1500 * MIB)
})

const children = (): readonly string[] =>
  readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')

/** The guard, and not a program that pen starts beside it. */
const isGuard = (pid: string): boolean =>
  existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('sleep 15')

test('a box whose guard is killed while it starts ends, and pen goes on', async () => {
  using two = started()
  for (const wait of [0, 2, 4, 8, 16, 32]) {
    const box = inBox(two, 'sleep 15').catch(() => undefined)
    let guard: string | undefined
    for (; guard === undefined; await Bun.sleep(1)) guard = children().find(isGuard)
    await Bun.sleep(wait)
    process.kill(Number(guard), 'SIGKILL')
    expect((await box)?.code).not.toBe(0)
  }
})
