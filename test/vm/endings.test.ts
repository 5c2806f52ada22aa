/** What is left when a part of a virtual machine is killed: nothing, and the next start works. */
import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { adoptOrphans, descendants, untilAlone } from '../conformance/descendants.ts'
import { EVERYBODY } from '../conformance/launcher.ts'
import type { ProjectSandbox } from '../lifecycle/project-sandbox.ts'
import { onMachine, projectOf, startMachine } from './machine.ts'

adoptOrphans()

const who = EVERYBODY.at(-1)
const pids = (): Set<number> => new Set(descendants().map(({ pid }) => pid))

async function inProject(body: (here: ProjectSandbox) => Promise<void>): Promise<void> {
  if (who === undefined) return
  const here = projectOf(who)
  try {
    await body(here)
  } finally {
    await here.pen('stop')
    here.box.remove()
  }
}

const PARTS: readonly (readonly [name: string, find: (here: ProjectSandbox) => number | undefined])[] = [
  ['QEMU', () => find(/^\S*qemu-system/)],
  ['the file server of the tree', () => find(/virtiofsd .*--shared-dir \/$/)],
  ['the file server of the project', () => find(/virtiofsd .*--shared-dir \/.+/)],
  ['the supervisor', here => here.supervisor()],
]

const find = (command: RegExp): number | undefined =>
  descendants().find(one => command.test(one.command) && !one.command.includes('kill -9'))?.pid

for (const [name, pidOf] of PARTS)
  onMachine(
    `P17 when ${name} is killed, the command ends and nothing is left`,
    () =>
      inProject(async here => {
        const known = pids()
        await startMachine(here)
        const command = here.start(['exec', '--', '/bin/sh', '-c', 'echo up; sleep 300'], {
          timeoutMs: 100_000,
        })
        await command.printed('up')
        const pid = pidOf(here)
        expect([name, pid]).toEqual([name, expect.any(Number)])
        process.kill(pid ?? 0, 'SIGKILL')
        expect((await command.ended).code).not.toBe(0)
        expect(await untilAlone(known, 5000)).toEqual([])
        expect(here.leftovers()).toEqual([])
        expect(readdirSync(here.stateDir).filter(left => left.startsWith('.vm-'))).toEqual([])
      }),
    240_000,
  )

onMachine(
  'P17 a start that is killed while the guest boots leaves nothing, and the next one works',
  () =>
    inProject(async here => {
      const known = pids()
      for (const ms of [50, 300, 1500]) {
        const starting = here.box.start(['sleep', '100'], { through: 'exec "$@"' })
        await Bun.sleep(ms)
        starting.child.kill('SIGKILL')
        await starting.ended
        expect([ms, await untilAlone(known, 5000)]).toEqual([ms, []])
      }
      const again = await here.box.run(['echo', 'again'], { timeoutMs: 100_000 })
      expect(again).toMatchObject({ code: 0, stdout: 'again\n' })
    }),
  120_000,
)
