import { afterEach, describe, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { skipUnless } from '../../test/skip.ts'
import { within } from '../../test/until.ts'
import { Freezer } from './freezer.ts'
import { Throttle } from './throttle.ts'

const dir = realpathSync(mkdtempSync(join(tmpdir(), 'pen-freezer-')))
const children: Bun.Subprocess[] = []

afterEach(async () => {
  for (const child of children.splice(0)) {
    // The group: the shell, and its children that are stopped.
    process.kill(-child.pid, 'SIGKILL')
    await child.exited
  }
})

/** Counts in a file, in a child of the process that stands for the sandbox's init. */
async function counting(
  count = 'i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.002; done',
): Promise<number> {
  rmSync(`${dir}/count`, { force: true })
  const child = Bun.spawn(['sh', '-c', `sh -c '${count}' & wait`], { cwd: dir, detached: true })
  children.push(child)
  while (!existsSync(`${dir}/count`)) await Bun.sleep(2)
  return child.pid
}

const count = (): string => readFileSync(`${dir}/count`, 'utf8')

/** Whether something happened while the sandbox was paused, and whether it went on afterwards. */
async function changes(freezer: Freezer): Promise<readonly [boolean | undefined, boolean]> {
  const during = await freezer.whilePaused(async () => {
    const before = count()
    await Bun.sleep(40)
    return count() !== before
  })
  const after = count()
  return [during, await within(2000, () => count() !== after)]
}

describe('a paused sandbox', () => {
  test('stands still by SIGSTOP, and goes on afterwards', async () => {
    const freezer = new Freezer(undefined, new Throttle(await counting()))
    expect(await changes(freezer)).toEqual([false, true])
  })

  test('goes on when the look fails', async () => {
    const freezer = new Freezer(undefined, new Throttle(await counting()))
    const failing = freezer.whilePaused(async () => {
      throw new Error('the look failed')
    })
    await expect(failing).rejects.toThrow('the look failed')
    const before = count()
    await Bun.sleep(60)
    expect(count()).not.toBe(before)
  })

  test('stays paused for a look when its CPU pause is over', async () => {
    const throttle = new Throttle(await counting())
    throttle.pause()
    const freezer = new Freezer(undefined, throttle)
    const isStill = await freezer.whilePaused(async () => {
      throttle.resume()
      const before = count()
      await Bun.sleep(40)
      return count() === before
    })
    expect(isStill).toBe(true)
  })

  test('stays paused by its CPU limit when the look is done', async () => {
    const throttle = new Throttle(await counting())
    await new Freezer(undefined, throttle).whilePaused(async () => void throttle.pause())
    const before = count()
    await Bun.sleep(40)
    expect([count() === before, throttle.isPaused]).toEqual([true, true])
    throttle.resume()
    await Bun.sleep(60)
    expect(count()).not.toBe(before)
  })

  test('stands still although a busy machine lets no parent stop before its children', async () => {
    class Busy extends Throttle {
      override pause(...[reason, how]: Parameters<Throttle['pause']>): boolean {
        return how === 'at once' && super.pause(reason, how)
      }
    }
    const freezer = new Freezer(undefined, new Busy(await counting()))
    expect(await changes(freezer)).toEqual([false, true])
  })

  test('is looked at although a process wakes itself', async () => {
    const wakes = 'i=0; (while :; do kill -CONT 0; done) & while :; do i=$((i+1)); echo $i > count; done'
    const freezer = new Freezer(undefined, new Throttle(await counting(wakes)))
    expect(await freezer.whilePaused(async () => 'looked')).toBe('looked')
  })

  const CGROUPS = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'].find(
    top => existsSync(`${top}/cgroup.procs`) && existsSync(`${top}/cgroup.subtree_control`),
  )
  skipUnless(CGROUPS !== undefined && process.getuid?.() === 0, 'cgroup version 2, as root')(
    'stands still by its cgroup, and goes on afterwards',
    async () => {
      const cgroup = `${CGROUPS}/pen-freezer-test-${process.pid}`
      mkdirSync(cgroup)
      try {
        const pid = await counting()
        const members = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ')
        for (const member of [pid, ...members]) writeFileSync(`${cgroup}/cgroup.procs`, String(member))
        expect(await changes(new Freezer(cgroup, new Throttle(pid)))).toEqual([false, true])
        process.kill(-pid, 'SIGKILL')
        await children.pop()?.exited
      } finally {
        for (let i = 0; i < 50 && existsSync(cgroup); i++) {
          try {
            rmdirSync(cgroup)
          } catch {
            await Bun.sleep(20)
          }
        }
      }
    },
  )
})
