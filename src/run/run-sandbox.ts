/**
 * The pipeline of one sandbox: load the policy, survey the host, build the plan, start, supervise, clean up. `pen run` calls it for one
 * command, and a detached supervisor for a sandbox that stays.
 */
import { existsSync, readdirSync } from 'node:fs'
import { auditDirectory } from '../audit/directory.ts'
import type { HeadStart } from '../backend/container/head-start.ts'
import { type ExitCode, PenError } from '../base/error.ts'
import { leaveNoCore } from '../base/kernel/process.ts'
import { phase } from '../base/phases.ts'
import { UndoStack } from '../base/undo.ts'
import type { Project } from '../config/project.ts'
import { openGaps } from '../plan/gaps.ts'
import type { Plan } from '../plan/plan.ts'
import { opensHosts } from '../policy/network/secret.ts'
import type { Maker } from '../protect/sweep-killed-runs.ts'
import { recordsIn } from '../survey/run-records.ts'
import { type Chosen, type Prepared, type PrepareOptions, prepare, withAlternative } from './prepare.ts'
import { adoptionOptions } from './repository-options.ts'
import { SandboxDoor } from './sandbox-door.ts'
import type { Opening } from './secrets/opening.ts'
import { startSandbox } from './start-sandbox.ts'
import type { Serving } from './supervision/supervisor.ts'

export interface RunOptions extends PrepareOptions {
  /** Prints one line for the user. */
  readonly tell: (line: string) => void
  /** Called with the plan before anything starts. The run stops when it throws. */
  readonly onPlan?: (prepared: Prepared) => void
  /**
   * For a sandbox that stays: begins to take orders for it. The function that it returns is called after the sandbox's end. It gives the
   * exit code, if the end was asked for.
   */
  readonly serve?: (serving: Serving, image: string | null) => Promise<() => ExitCode | undefined>
  /** The container of the last start, requested before the plan. Its owner removes it when it is not used. */
  readonly headStart?: HeadStart | undefined
}

export async function runSandbox(options: RunOptions): Promise<ExitCode> {
  // This process will hold secrets, and a dump could land in the project.
  leaveNoCore()
  const undo = new UndoStack()
  try {
    const door = new SandboxDoor(undo)
    const { project } = options
    const makers = await sweepKilled(project, options.tell)
    for (const maker of makers) {
      const { whileAlone } = await import('../protect/while-alone.ts')
      const mine = makers.map(({ run }) => run)
      const adopt = (): Promise<boolean> => adoptAfterKill(options, maker, options.tell)
      if (await whileAlone(project.shared.stateDir, mine, adopt)) maker.done()
      else maker.keep()
    }
    const planned = await prepare(options, chosen => beginEarly(chosen, door))
    options.onPlan?.(planned)
    refuseOpenGaps(planned.plan, planned.loaded.policy.acceptGaps)
    const { prepared, opening } = await openingFor(planned, options.env)
    const failed = (error: unknown): never => {
      throw withAlternative(error, prepared.alternative)
    }
    const started = await startSandbox(prepared, door, options, undo).catch(failed)
    phase('backend started')
    // Loaded while bubblewrap works: nothing in it is needed earlier.
    const { supervise } = await import('./supervise.ts')
    const { exitCode, lines } = await supervise(started, undo, opening).catch(failed)
    const { layer } = prepared.plan
    if (lines.length > 0 || layer !== undefined) started.pty?.startNewLine()
    // The user gets the terminal back before anything is printed on it.
    await undo.unwind()
    phase('cleaned up')
    for (const line of lines) options.tell(line)
    if (layer !== undefined) {
      const { reviewLines } = await import('../review/count-changes.ts')
      for (const line of reviewLines(project.stateDir)) options.tell(line)
    }
    return exitCode
  } finally {
    await undo.unwind()
  }
}

/** What it moves is in the audit, as that of a run. Most starts find no record, and load nothing of this. */
async function sweepKilled(
  { stateDir, id, shared }: Project,
  tell: RunOptions['tell'],
): Promise<readonly Maker[]> {
  const records = recordsIn(shared.stateDir)
  if (!existsSync(records) || readdirSync(records).length === 0) return []
  const { sweepAfterKill } = await import('../protect/watch-places.ts')
  const { Audit } = await import('../audit/append.ts')
  const audit = new Audit(auditDirectory(stateDir), { sandbox: id })
  try {
    return await sweepAfterKill(shared.stateDir, tell, event => audit.record(event))
  } finally {
    audit.close()
  }
}

/** Secrets, and hosts of which pen judges each request. Most runs have neither, and load nothing for it. */
async function openingFor(
  prepared: Prepared,
  env: RunOptions['env'],
): Promise<{ readonly prepared: Prepared; readonly opening?: Opening }> {
  const { plan, loaded } = prepared
  const { network } = loaded.policy
  if (plan.network.kind === 'bridge' && network.secrets.some(({ rule }) => rule.from.kind !== 'oauth'))
    throw new PenError('GAP', {
      what: "secrets need pen's gateway, and this sandbox uses the engine's open network",
      hint: 'set network.mode to "gateway"; or pass a key itself with --expose-key NAME',
    })
  if (plan.network.kind !== 'gateway' || !opensHosts(network, !plan.soft)) return { prepared }
  const { prepareOpening } = await import('./secrets/opening.ts')
  return await prepareOpening(prepared, env)
}

/** A run that was killed may have made a repository, in a project that had none. False: a later start looks again. */
async function adoptAfterKill(
  options: PrepareOptions,
  { run, isThere }: Maker,
  tell: RunOptions['tell'],
): Promise<boolean> {
  const { adoptRepository } = await import('../repository/adopt/adopt.ts')
  const { takenTo, takeRepository } = await import('../repository/adopt/take-repository.ts')
  const { world, shared } = options.project
  const { stateDir } = shared
  // Before the survey, which would refuse what a sandbox can do to a repository.
  const stays = isThere ? takeRepository(world.workspace, stateDir, run) : undefined
  if (stays !== undefined) tell(stays)
  if (stays !== undefined && existsSync(`${world.workspace}/.git`)) return false
  // The run may have been killed when it had taken the repository. What is there now was put aside then.
  if (existsSync(`${takenTo(stateDir, run)}/dir`))
    for (const line of await adoptRepository(adoptionOptions(await prepare(options)), run)) tell(line)
  return true
}

/** The one place where work begins before the plan is ready, because it takes longer than the rest. The run's undo stack ends it. */
function beginEarly({ backend, policy, cacheDir }: Chosen, door: SandboxDoor): void {
  door.openEarly(backend, policy)
  backend.warm?.(cacheDir)
}

function refuseOpenGaps(plan: Plan, accepted: readonly string[]): void {
  const open = openGaps(plan.gaps, accepted)
  if (open.length === 0) return
  throw new PenError('GAP', {
    what: `this machine cannot keep all of the policy: ${open.map(gap => `${gap.name} (${gap.why})`).join('; ')}`,
    hint: `accept by name with ${open.map(gap => `--accept-gap ${gap.name}`).join(' ')}, or change the policy`,
  })
}
