import { expect } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from '../conformance/box.ts'
import { conformance } from '../conformance/conformance.ts'
import {
  adoptOrphans,
  descendants,
  mountsAbout,
  namespacesHere,
  namespacesOf,
  stillUsed,
  untilAlone,
} from '../conformance/descendants.ts'
import { PEN } from '../conformance/launcher.ts'

adoptOrphans()

const pids = () => new Set(descendants().map(({ pid }) => pid))

/** Directories of dead pens, in every cgroup hierarchy. The name begins with the owner's pid. */
const cgroups = (): string[] => {
  const out: string[] = []
  const walk = (dir: string, depth: number) => {
    for (const entry of existsSync(dir) ? readdirSync(dir, { withFileTypes: true }) : []) {
      if (!entry.isDirectory()) continue
      const owner = /^pen-(\d+)-/.exec(entry.name)?.[1]
      if (owner !== undefined && !existsSync(`/proc/${owner}`)) out.push(join(dir, entry.name))
      else if (owner === undefined && depth < 3) walk(join(dir, entry.name), depth + 1)
    }
  }
  walk('/sys/fs/cgroup', 0)
  return out
}

/** Contains one of everything that could be left: held and absent places, background processes, scratch. */
function prepare(box: Box): void {
  box.host('git init -q .; mkdir .vscode; echo {} > .vscode/tasks.json')
  box.file('.env', 'SECRET')
  box.file('src/main.c', 'int main(void) { return 0; }')
  box.file(join(box.home, '.bashrc'), '# mine')
}

conformance(
  'P4 a run that ends leaves no process, mount, namespace or file, and changes none',
  async box => {
    prepare(box)
    const before = box.listing()
    const known = pids()
    const others = namespacesHere()
    const { ended, printed } = box.start([
      '/bin/sh',
      '-c',
      'sleep 60 & setsid sleep 61 & echo up; sleep 0.2; exit 3',
    ])
    await printed('up')
    const spaces = namespacesOf(descendants().filter(({ pid }) => !known.has(pid))).difference(others)
    // One of each kind, except the user namespace in a container of root's engine.
    expect(spaces.size).toBeGreaterThanOrEqual(6)
    expect((await ended).code).toBe(3)
    expect(await untilAlone(known, 200)).toEqual([])
    expect(stillUsed(spaces)).toEqual([])
    expect(mountsAbout(box.root)).toEqual([])
    expect(box.listing()).toEqual(before)
  },
  { alone: true },
)

for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGKILL'] as const)
  conformance(
    `P4 a run that is ended by ${signal} leaves nothing either`,
    async box => {
      prepare(box)
      const before = box.listing()
      const known = pids()
      const others = namespacesHere()
      const run = box.start(['/bin/sh', '-c', '(trap "" TERM; setsid sleep 62) & sleep 63 & echo up; wait'], {
        through: 'exec "$@"',
      })
      await run.printed('up')
      const spaces = namespacesOf(descendants().filter(({ pid }) => !known.has(pid))).difference(others)
      run.child.kill(signal)
      await run.ended
      expect(await untilAlone(known, 2000)).toEqual([])
      expect(stillUsed(spaces)).toEqual([])
      expect(mountsAbout(box.root)).toEqual([])
      expect(box.listing()).toEqual(before)
    },
    { alone: true },
  )

conformance(
  'P4 SIGKILL of pen at many moments leaves nothing after two seconds but cgroups, until the next run',
  async box => {
    prepare(box)
    await box.sh('true')
    const before = box.listing()
    // Other tests on this machine may kill their own pens, and pids are reused.
    const pens = new Set<string>()
    const old = new Set(cgroups())
    const known = pids()
    const marks: string[] = []
    // Most of them during the start, the others while it runs or ends. A container takes ten times as long.
    const [kills, step] = box.launcher.isolation === 'container' ? [9, 40] : [50, 1]
    for (let i = 0; i < kills; i++) {
      const wait = i < kills * 0.8 ? (i + Math.random()) * step : kills * step + Math.random() * 120
      const run = box.start(['/bin/sh', '-c', 'sleep 64 & sleep 0.1; sleep 65 & wait'], {
        through: 'exec "$@"',
      })
      pens.add(String(run.child.pid))
      await Bun.sleep(wait)
      run.child.kill('SIGKILL')
      const left = await untilAlone(known, 2000)
      if (left.length > 0)
        marks.push(`after ${wait.toFixed(2)} ms: ${left.map(({ command }) => command).join(' | ')}`)
      await run.ended
    }
    expect(marks).toEqual([])
    expect(mountsAbout(box.root)).toEqual([])
    expect(box.listing()).toEqual(before)
    await box.sh('true')
    const isOurs = (path: string) => !old.has(path) && pens.has(/\/pen-(\d+)-/.exec(path)?.[1] ?? '')
    expect(cgroups().filter(isOurs)).toEqual([])
  },
  { timeout: 120_000, alone: true },
)

conformance(
  'P4 SIGKILL of any helper of pen ends the sandbox or does no harm, and leaves nothing',
  async box => {
    const known = pids()
    for (const nth of [0, 1, 2, 3, 4]) {
      const run = box.start(['/bin/sh', '-c', 'echo up; sleep 1.5; echo end'], { through: 'exec "$@"' })
      await run.printed('up')
      const mine = descendants().filter(({ pid }) => !known.has(pid))
      const victim = mine[nth]
      if (victim !== undefined) process.kill(victim.pid, 'SIGKILL')
      const { code } = await run.ended
      expect([victim?.command, typeof code]).toEqual([victim?.command, nth === 0 ? 'undefined' : 'number'])
      expect(await untilAlone(known, 2000)).toEqual([])
    }
  },
  { alone: true },
)

conformance(
  'P4 nor between the sandbox leaving pen’s group and its parent-death signal being set',
  async box => {
    const known = pids()
    // That moment lasts microseconds. Here every new session is delayed by 0.4 s: the guard's, then the
    // sandbox's.
    const slow = 'exec strace -f -qq -o /dev/null -e trace=setsid -e inject=setsid:delay_exit=400000 "$@"'
    for (const wait of [300, 400, 500, 600, 700]) {
      const run = box.start(['/bin/sh', '-c', 'echo alive > alive; sleep 66'], { through: slow })
      let pen: number | undefined
      while (pen === undefined) {
        await Bun.sleep(5)
        pen = descendants().find(({ pid, command }) => !known.has(pid) && command.startsWith(PEN))?.pid
      }
      const began = performance.now()
      await Bun.sleep(wait)
      process.kill(pen, 'SIGKILL')
      const isInTime = performance.now() - began < 780
      expect([wait, await untilAlone(known, 2000)]).toEqual([wait, []])
      await run.ended
      // A busy machine may kill later than requested.
      if (isInTime) expect([wait, existsSync(join(box.project, 'alive'))]).toEqual([wait, false])
    }
  },
  { timeout: 60_000, only: ({ who }) => who.become.length === 0, needs: 'bubblewrap', alone: true },
)

conformance('P4 no stub exists at an absent place while the sandbox runs', async box => {
  const before = box.listing(box.project)
  const run = box.start(['/bin/sh', '-c', 'echo up; sleep 0.3'])
  await run.printed('up')
  expect(box.listing(box.project)).toEqual(before)
  await run.ended
})

conformance('P4 a crash leaves no core, and passes none to a program of the host', async box => {
  const { code, stdout } = await box.sh("grep core /proc/self/limits; sh -c 'kill -SEGV $$'; ls")
  expect([code, stdout.replace(/ +/g, ' ')]).toEqual([0, 'Max core file size 1 1 bytes \n'])
})
