/**
 * Only listed programs run. pen's guest program starts the command. It waits until every mount outside the system is
 * noexec, so that no file there can be executed or mapped as code. Then it restricts execution by Landlock. The guest
 * program is passed by descriptor: the sandbox never sees its file.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { pipe } from '../../base/kernel/descriptor.ts'
import type { UndoStack } from '../../base/undo.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import { isWithin } from '../../policy/files/path.ts'
import { LISTED_MODE, type ListedOrder, READY } from '../../protocol/listed-order.ts'
import { ANY_FILE } from '../mounts/file-identity.ts'
import type { NamespaceMounts } from '../mounts/live-mounts.ts'
import { mountPointsOf } from '../mounts/mount-points.ts'

export interface Listed {
  /** Passed to the guard, in this order. */
  readonly fds: readonly number[]
  /** What bubblewrap starts instead of the command. `firstFd` is the number of the first of `fds` in bubblewrap. */
  argv(firstFd: number): readonly string[]
  /** The whole environment of the guest program. */
  readonly env: Plan['env']
  /** Starts the command, once the mounts are noexec. */
  release(): void
}

export function startListed(plan: Plan, temporary: (bytes: Uint8Array) => number, undo: UndoStack): Listed {
  const program = openSync(process.execPath, 'r')
  undo.push('the guest program', () => closeSync(program))
  const order: ListedOrder = {
    argv: plan.argv,
    // Bubblewrap would have added PWD.
    env: [...plan.env.map(({ name, value }) => ({ name, value })), { name: 'PWD', value: plan.cwd }],
    executable: plan.executable,
  }
  const orderFd = temporary(Buffer.from(JSON.stringify(order)))
  const [waits, ready] = pipe()
  undo.push('the guest’s start pipe', () => {
    closeSync(waits)
    closeSync(ready)
  })
  return {
    fds: [program, orderFd, waits],
    argv: first => [`/proc/self/fd/${first}`, LISTED_MODE, String(first + 1), String(first + 2)],
    env: plan.env.filter(({ name }) => name === 'AGENT_IN_SANDBOX'),
    release: () => writeSync(ready, READY),
  }
}

/** Runs before the sandbox's command or exec daemon starts. */
export async function makeNoexec(
  steps: readonly Step[],
  mounts: NamespaceMounts,
  initPid: number | undefined,
): Promise<void> {
  if (initPid === undefined) return
  // Every mount of the sandbox except its root, which is read-only and holds only directories and links.
  const places = [...new Set(mountPointsOf(initPid))].filter(
    path => path !== '/' && !holdsPrograms(steps, path),
  )
  const results = await mounts.carryOut(places.map(path => ({ ...ANY_FILE, how: 'noexec', path })))
  const failed = results.findIndex(result => result !== 'held')
  if (failed < 0) return
  const result = results[failed]
  const why = typeof result === 'object' ? result.failed : result
  throw new PenError('BACKEND', {
    what: `${places[failed]} could not be made noexec (${why}), which tools.exec "listed" needs`,
    hint: 'set tools.exec to "any", or report this with `pen version --json`',
  })
}

/** True for a read-only system directory outside `/etc`. The step that shows the path decides. */
export function holdsPrograms(steps: readonly Step[], path: string): boolean {
  let shown: Step | undefined
  for (const step of steps)
    if (
      step.op !== 'seal' &&
      isWithin(path, step.at) &&
      (shown === undefined || step.at.length >= shown.at.length)
    )
      shown = step
  return shown?.op === 'bind' && shown.mode === 'ro' && shown.why === 'system' && !isWithin(path, '/etc')
}
