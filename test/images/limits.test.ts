/**
 * A build has the limits of a sandbox. One that exceeds them is ended, reported and recorded, and nothing of it
 * keeps running.
 */
import { expect } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { everyEngine } from '../engines/every-engine.ts'
import { BASE_NAME } from '../engines/test-engine.ts'
import { Workshop } from './workshop.ts'

const onEachEngine = everyEngine()

/** Processes of the machine with this word on their command line. */
const running = (mark: string): string[] =>
  readdirSync('/proc').filter(pid => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').includes(mark)
    } catch {
      return false
    }
  })

const CASES = [
  {
    limit: 'pids=40',
    enough: 'pids=40',
    beyond: (mark: string) => `for i in $(seq 90); do sleep ${mark} & done; wait`,
    within: 'for i in $(seq 20); do sleep 0.5 & done; wait',
    printed: /the build was stopped: it had \d+ processes and threads, limits\.pids is 40/,
  },
  {
    limit: 'wall=4s',
    enough: 'wall=60s',
    beyond: (mark: string) => `sleep ${mark}`,
    within: 'sleep 0.1',
    printed: /the build was stopped after \d(\.\d)? s, limits\.wall is 4 s/,
  },
  {
    limit: 'disk=500MiB',
    enough: 'disk=500MiB',
    beyond: (mark: string) => `head -c 800M /dev/zero >/big; sleep ${mark}`,
    within: 'head -c 10M /dev/urandom >/small',
    printed: /the build was stopped: it wrote [\d.]+ MiB, limits\.disk is 500 MiB/,
  },
] as const

for (const { limit, enough, beyond, within, printed } of CASES)
  onEachEngine(`P13 a build beyond limits.${limit.split('=')[0]} is ended and reported`, async engine => {
    using shop = new Workshop(engine)
    const mark = `9${String(Math.random()).slice(2, 8)}`
    shop.dockerfile(`FROM ${BASE_NAME}\nRUN ${beyond(mark)}\n`)
    const over = shop.agreeAndBuild('--limit', limit)
    expect([over.code, over.out]).toEqual([125, ''])
    expect(over.err).toMatch(printed)
    expect(running(mark)).toEqual([])
    expect(shop.audit().filter(({ kind }) => kind === 'limit-hit')).toMatchObject([
      { limit: limit.split('=')[0] },
    ])
    shop.dockerfile(`FROM ${BASE_NAME}\nRUN ${within}; true ${mark}\n`)
    expect(shop.agreeAndBuild('--quiet', '--limit', enough)).toMatchObject({ code: 0, err: '' })
  })

onEachEngine('P13 a build has no more CPUs and memory than the limits', async engine => {
  using shop = new Workshop(engine)
  const use = (mib: number) => `python3 -c "x = bytearray(${mib} << 20); import time; time.sleep(1)"`
  const quota = 'cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max; nproc'
  const limits = ['--limit', 'cpus=1', '--limit', 'memory=256MiB']
  shop.dockerfile(`FROM ${BASE_NAME}\nRUN (${quota}) >/bounds 2>&1; ${use(16)}; true ${Math.random()}\n`)
  const built = shop.agreeAndBuild(...limits)
  expect(built).toMatchObject({ code: 0 })
  // A quota of one CPU, or one CPU when the engine has no cgroup for it.
  expect(shop.inside(built, 'cat /bounds')).toMatch(/^100000\b|^1$/m)
  shop.dockerfile(`FROM ${BASE_NAME}\nRUN ${use(900)}\n`)
  const over = shop.agreeAndBuild(...limits)
  expect([over.code, over.out]).toEqual([125, ''])
  expect(over.err).toMatch(/the build was stopped: it used|the build failed with exit code|137|Killed/)
})
