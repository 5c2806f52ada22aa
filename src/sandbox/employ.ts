/** What a sandbox with an agent is for: one command on this terminal, or whatever its control socket is asked for. */
import { type ExitCode, PenError } from '../base/error.ts'
import type { Plan } from '../plan/plan.ts'
import type { Employ, Serving } from './keeper.ts'
import type { LaunchOptions } from './launch.ts'

export function employ(plan: Plan, serve: LaunchOptions['serve'], image: string | null): Employ {
  return serve === undefined
    ? serving => runCommand(plan, serving)
    : serving => serveUntilEnd(serve, serving, image)
}

async function runCommand(plan: Plan, { running }: Serving): Promise<number> {
  const { attach } = await import('./attach.ts')
  if (running.exec === undefined) throw new PenError('INTERNAL', { what: 'the sandbox has no agent' })
  return await attach(running.exec, { argv: plan.argv, cwd: plan.cwd, env: [] }, { signals: false })
}

async function serveUntilEnd(
  serve: NonNullable<LaunchOptions['serve']>,
  serving: Serving,
  image: string | null,
): Promise<ExitCode | undefined> {
  const close = await serve(serving, image)
  await serving.running.ended.catch(() => undefined)
  return close()
}
