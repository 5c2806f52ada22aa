/** Stops the sandbox of `pen start`, and starts it again with its flags and new ones. */
import { printable } from '../base/printable.ts'
import type { Project } from '../config/project.ts'
import { presenceOf, withChangeLock } from '../control/state.ts'
import { orderForRestart } from '../control/stored-order.ts'
import { mergeOrders, type SupervisorOrder } from '../control/supervisor-order.ts'
import { startUnlessRunning } from './start.ts'
import { pauseSandbox } from './stop.ts'

interface Restart {
  /** The new flags. */
  readonly given: SupervisorOrder
  readonly say: (line: string) => void
}

export const restartSandbox = (project: Project, { given, say }: Restart): Promise<void> =>
  withChangeLock(project.stateDir, async () => {
    const before = await orderForRestart(project.stateDir)
    // Throws before anything is stopped.
    const asked = before === undefined ? given : mergeOrders(before, given)
    await pauseSandbox(project.stateDir, line => say(printable(line, 1024)))
    await startUnlessRunning(project, { asked, say })
  })

/** Stops it for as long as `work` takes, if it runs. It starts again also when the work fails. */
export const whileStopped = <T>(
  project: Project,
  say: (line: string) => void,
  work: () => Promise<T>,
): Promise<T> =>
  withChangeLock(project.stateDir, async () => {
    const { stateDir } = project
    if ((await presenceOf(stateDir)).is === 'absent') return await work()
    const asked = await orderForRestart(stateDir)
    say('stopping the sandbox; it starts again with its flags')
    await pauseSandbox(stateDir, line => say(printable(line, 1024)))
    try {
      return await work()
    } finally {
      if (asked !== undefined) await startUnlessRunning(project, { asked, say })
    }
  })
