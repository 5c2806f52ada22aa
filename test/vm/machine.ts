/** A virtual machine for many claims: it boots once for each kind of user. */
import { afterAll, beforeAll, describe } from 'bun:test'
import { Box } from '../conformance/box.ts'
import { EVERYBODY, launcherOf, onMachines, type Who } from '../conformance/launcher.ts'
import { ProjectSandbox } from '../lifecycle/project-sandbox.ts'
import { type DefineTest, skipUnless } from '../skip.ts'

const BOOT_MS = 120_000

export const START = ['start', '--detach', '--isolation', 'vm'] as const

const backends = EVERYBODY.map(onMachines)
export const hasQemu = backends.every(({ missing }) => missing === undefined)
export const onMachine = skipUnless(hasQemu, 'QEMU is missing')

/** For claims about the guest alone: it is the same for every user of the host, and each takes seconds where QEMU translates. */
export const ofTheGuest = (who: Who): DefineTest => (who === EVERYBODY.at(-1) ? onMachine : () => undefined)

/** A project of this user that no sandbox runs in yet. */
export function projectOf(who: Who, config: object = {}): ProjectSandbox {
  const here = new ProjectSandbox(new Box(launcherOf(onMachines(who))))
  here.configure(JSON.stringify({ version: 1, profile: 'coding', isolation: 'vm', ...config }))
  return here
}

export async function startMachine(here: ProjectSandbox, ...flags: readonly string[]): Promise<void> {
  const { code, stderr } = await here.start([...START, ...flags], { timeoutMs: BOOT_MS }).ended
  if (code !== 0) throw new Error(`the machine did not start: ${stderr}`)
}

/** Defines claims about one machine. `prepare` runs on the host, before it boots. */
export function inMachine(
  define: (here: () => ProjectSandbox, who: Who) => void,
  prepare: (here: ProjectSandbox) => readonly string[] = () => [],
  config: object = {},
): void {
  for (const who of EVERYBODY)
    describe(`as ${who.name}`, () => {
      let here: ProjectSandbox | undefined
      beforeAll(async () => {
        if (!hasQemu) return
        here = projectOf(who, config)
        await startMachine(here, ...prepare(here))
      }, BOOT_MS)
      afterAll(async () => {
        await here?.pen('stop')
        here?.box.remove()
      })
      define(() => {
        if (here === undefined) throw new Error('the machine did not start')
        return here
      }, who)
    })
}
