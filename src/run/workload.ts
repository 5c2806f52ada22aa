/** What a sandbox with an exec daemon does: run one command on this terminal, or serve its control socket. */
import { type ExitCode, PenError } from '../base/error.ts'
import { phase } from '../base/phases.ts'
import type { Plan } from '../plan/plan.ts'
import type { RunOptions } from './run-sandbox.ts'
import type { Serving, Workload } from './supervisor.ts'

export function workload(plan: Plan, { serve, tell }: RunOptions, image: string | null): Workload {
  return serve === undefined
    ? serving => runCommand(plan, serving, tell)
    : serving => serveUntilEnd(serve, serving, image)
}

async function runCommand(plan: Plan, { running }: Serving, tell: RunOptions['tell']): Promise<ExitCode> {
  const { attach, exitCodeOf, whyNotStarted } = await import('../terminal/attach.ts')
  if (running.exec === undefined) throw new PenError('INTERNAL', { what: 'the sandbox has no exec daemon' })
  // The limits are set when it is ready. Earlier processes would not be counted.
  await running.ready
  phase('command started')
  const order = { argv: plan.argv, cwd: plan.cwd, env: [] }
  const ending = await attach(running.exec, order, { signals: false })
  phase('command ended')
  const why = whyNotStarted(ending, plan.argv)
  if (why !== undefined) tell(why)
  return exitCodeOf(ending)
}

async function serveUntilEnd(
  serve: NonNullable<RunOptions['serve']>,
  serving: Serving,
  image: string | null,
): Promise<ExitCode | undefined> {
  const close = await serve(serving, image)
  await serving.running.ended.catch(() => undefined)
  return close()
}
