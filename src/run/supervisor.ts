/**
 * The host-side owner of one running sandbox: limits, wall time, protected places and audit. Nothing inside can reach it. When it dies,
 * the guard ends the sandbox.
 */
import { version } from '../../package.json'
import type { Audit } from '../audit/append.ts'
import type { RefusalTally } from '../audit/refusals.ts'
import { canBePaused, type Ending, type Running } from '../backend/backend.ts'
import { lookAt, Unseen } from '../base/beneath/look-at.ts'
import { EXIT, type ExitCode } from '../base/error.ts'
import { kernelRelease } from '../base/kernel/kernel-facts.ts'
import { phase } from '../base/phases.ts'
import { printable } from '../base/printable.ts'
import type { Egress } from '../gateway/egress.ts'
import type { Vault } from '../gateway/secrets/vault.ts'
import { describeHit, isWorthReporting, type LimitHit, raiseLimit } from '../limits/limit-hit.ts'
import type { LimitHandle } from '../limits/limits.ts'
import { setProcessLimit } from '../limits/prlimit.ts'
import { policyData } from '../plan/data.ts'
import { PlaceWatch } from '../protect/watch-places.ts'
import type { WatchRecord } from '../protect/watch-record.ts'
import type { OwnRepository } from '../repository/own-repository.ts'
import { GitlinkWatch } from '../repository/submodules/watch-gitlinks.ts'
import type { RefEvent } from '../repository/sync/repository-sync.ts'
import { MountedPlaces } from '../survey/mounted-places.ts'
import { describeProject } from './describe-project.ts'
import type { Forwards } from './forwards.ts'
import { LivePolicy } from './live-policy.ts'
import type { Prepared } from './prepare.ts'
import { adoptionOptions, heldPointers } from './repository-options.ts'
import { passSignals, Stopping } from './stopping.ts'

const ADOPTED_LATER =
  'git: another sandbox of this project runs, and could swap the repository that was made inside: your git makes it again at the end of that run, or at the next start'

/** Shorter runs lose more by compiling than they gain: the end of a run took five milliseconds instead of two. */
const WORTH_COMPILING_MS = 100

/** When the file broker opens its socket. Earlier requests wait for it. */
const FILES_AFTER_MS = 60

/** A sandbox with an exec daemon, as its workload sees it. */
export type Serving = Omit<Supervised, 'workload'>

/** Resolves with the exit code of the run, and the sandbox then ends. Undefined: the sandbox ended first. */
export type Workload = (serving: Serving) => Promise<ExitCode | undefined>

export interface Supervised {
  readonly prepared: Prepared
  readonly running: Running
  readonly limits: LimitHandle
  readonly audit: Audit
  readonly refusals: RefusalTally
  /** Undefined for a sandbox without network. */
  readonly egress: Egress | undefined
  /** Undefined without secrets. */
  readonly vault: Vault | undefined
  readonly forwarding: Forwards
  /** Undefined for a sandbox that is one command. */
  readonly workload: Workload | undefined
  /** Undefined where the project has no repository. */
  readonly repository: OwnRepository | undefined
  readonly watchRecord: WatchRecord
}

export interface Result {
  readonly exitCode: ExitCode
  /** Lines for the user. */
  readonly lines: readonly string[]
}

export class Supervisor {
  readonly #sandbox: Supervised
  readonly #began = Date.now()
  readonly #lines: string[] = []
  readonly #recorded = new Set<string>()
  /** Why pen ended the sandbox. */
  #why: string | undefined
  /** False when a repository of the sandbox's stays in the project. */
  #isTaken: boolean = true

  constructor(sandbox: Supervised) {
    this.#sandbox = sandbox
  }

  /** Watches until the last process is gone. */
  async untilEnd(): Promise<Result> {
    const { running, limits, audit, prepared, refusals } = this.#sandbox
    const { plan } = prepared
    const isCommand = this.#sandbox.workload === undefined
    const stopping = new Stopping(running)
    const forget = passSignals(running, stopping)
    const wall = setTimeout(() => this.#endByWall(stopping), plan.limits.wall)
    let compiling: NodeJS.Timeout | undefined
    let stopPauses = (): void => undefined
    try {
      this.#recordStart()
      limits.onHit(hit => {
        try {
          this.#recordHit(hit)
          // A command of a sandbox that stays reports it at its own end.
          if (isWorthReporting(hit)) refusals.note(tellHit(hit))
        } catch (error) {
          stopping.failed(error)
        }
      })
      await this.#bound()
      await this.#forwardPorts()
      const network = this.#openNetwork(error => stopping.failed(error))
      const places = this.#watchPlaces(error => stopping.failed(error))
      const gitlinks = this.#watchGitlinks()
      running.begin(audit)
      this.#sandbox.repository?.watch(event => audit.record(event))
      phase(isCommand ? 'command started' : 'exec daemon started')
      const files = this.#serveFiles()
      if (plan.layer !== undefined) stopPauses = (await import('./pause.ts')).servePauses(this.#sandbox)
      const working = this.#workload(stopping)
      // From here on there may be hours of traffic, so compiling pays.
      compiling = setTimeout(() => Bun.unsafe.setJITPolicy(1), WORTH_COMPILING_MS)
      const ending = await running.ended.finally(() => files.finish().finally(() => places.finish()))
      this.#lines.push(...(gitlinks?.finish() ?? []))
      phase(isCommand ? 'command ended' : 'sandbox ended')
      const asked = await working
      this.#sandbox.forwarding.close()
      await network.finish(stopping)
      if (stopping.failure !== undefined) throw stopping.failure
      const hits = (await limits.finish()).filter(isWorthReporting)
      for (const hit of hits) {
        this.#recordHit(hit)
        this.#lines.push(tellHit(hit))
      }
      this.#lines.push(...refusals.lines())
      this.#lines.push(...(await this.#finishRepository()))
      // A run that is killed before this line leaves its record: the next one looks again.
      this.#sandbox.watchRecord.finish(places.isClean && this.#isTaken)
      const exitCode = this.#exitCode(asked ?? ending, stopping, hits)
      this.#lines.push(...describeProject(prepared, this.#began, isCommand ? 'command' : 'kept'))
      audit.record({ kind: 'run-end', exitCode, reason: this.#why, ms: Date.now() - this.#began })
      return { exitCode, lines: this.#lines }
    } finally {
      clearTimeout(wall)
      clearTimeout(compiling)
      stopPauses()
      this.#sandbox.forwarding.close()
      stopping.done()
      forget()
    }
  }

  /** A repository that was made inside, in a project that had none, becomes one of the host's own making. */
  async #finishRepository(): Promise<readonly string[]> {
    const { repository, prepared, audit } = this.#sandbox
    if (repository !== undefined) return await repository.finish()
    const { facts, plan } = prepared
    if (plan.layer !== undefined) return []
    const isNew = facts.repository.kind === 'none' || facts.repository.kind === 'ancestor'
    if (!isNew || plan.soft || !mayExist(`${plan.workspace}/.git`)) return []
    const { adoptRepository } = await import('../repository/adopt/adopt.ts')
    const { takeRepository } = await import('../repository/adopt/take-repository.ts')
    const { whileAlone } = await import('../protect/while-alone.ts')
    const { stateDir } = prepared.loaded.project.shared
    const lines = await whileAlone(stateDir, [audit.run], async () => {
      const stays = takeRepository(plan.workspace, stateDir, audit.run)
      this.#isTaken = stays === undefined
      if (stays !== undefined) return [stays]
      const record = (event: RefEvent): void => void audit.record(event)
      return await adoptRepository({ ...adoptionOptions(prepared), record }, audit.run)
    })
    this.#isTaken &&= lines !== undefined
    return lines ?? [ADOPTED_LATER]
  }

  /**
   * Opens the ports of the policy before the command starts. A port in use stops the run. A named sandbox gets free ports of the host:
   * the others of its project have the same config.
   */
  async #forwardPorts(): Promise<void> {
    const { prepared, forwarding } = this.#sandbox
    const { loaded, plan } = prepared
    const isGap = plan.gaps.some(({ name }) => name === 'no-ports')
    if (loaded.policy.ports.length > 0 && !isGap)
      await forwarding.open(
        loaded.policy.ports.map(({ rule }) =>
          loaded.project.name === undefined ? rule : { ...rule, host: 0 },
        ),
      )
  }

  /** Connections wait in the kernel until the gateway serves. A gateway that fails ends the sandbox. */
  #openNetwork(fail: (error: unknown) => void): { finish(stopping: Stopping): Promise<void> } {
    const { egress, prepared, audit } = this.#sandbox
    if (egress === undefined) return { finish: async () => undefined }
    const serving = egress.serve().catch(fail)
    const live = new LivePolicy({
      loaded: prepared.loaded,
      seen: prepared.seen,
      load: prepared.load,
      run: audit.run,
      audit,
      change: network => egress.change(network),
      tell: line => this.#lines.push(line),
      fail,
    })
    return {
      finish: async ({ reason, failure }) => {
        await serving
        await live.stop()
        if (reason === undefined && failure === undefined) await egress.finish()
        await egress.recordRefused()
        await egress.close()
      },
    }
  }

  /** Opens the file broker after a delay, because short runs do not need it. If it cannot listen, the sandbox goes on without it. */
  #serveFiles(): { finish(): Promise<void> } {
    const { running, prepared, refusals } = this.#sandbox
    const { inside } = running
    if (inside === undefined) return { finish: async () => undefined }
    const tell = (line: string) => void this.#lines.push(line)
    const fail = (error: unknown) => tell(`files: ${printable(String(error))}`)
    let opened: Promise<{ close(): Promise<void> } | undefined> | undefined
    const timer = setTimeout(() => {
      opened = import('./file-broker.ts')
        .then(({ openFileBroker }) => openFileBroker({ prepared, inside, audit: refusals, tell, fail }))
        .catch(error => void fail(error))
    }, FILES_AFTER_MS)
    return {
      finish: async () => {
        clearTimeout(timer)
        await (await opened)?.close()
      },
    }
  }

  /** Runs the workload, then kills the sandbox. */
  async #workload(stopping: Stopping): Promise<Ending | undefined> {
    const { workload, ...sandbox } = this.#sandbox
    if (workload === undefined) return undefined
    try {
      const work: Promise<ExitCode | undefined> = workload({
        ...sandbox,
        running: this.#watchful(sandbox.running),
      })
      const code = await work
      this.#sandbox.limits.look()
      return code === undefined ? undefined : { kind: 'exit', code }
    } catch (error) {
      // A sandbox that is stopped while it starts fails because of that.
      if (stopping.reason === undefined) stopping.failed(error)
      return undefined
    } finally {
      sandbox.running.kill()
    }
  }

  /** Limits of an idle sandbox are checked rarely. A new command wakes the watchdog. */
  #watchful(running: Running): Running {
    const { exec } = running
    if (exec === undefined) return running
    return {
      ...running,
      exec: (order, output) => {
        this.#sandbox.limits.wake()
        return exec(order, output)
      },
    }
  }

  /** Before the command starts. */
  async #bound(): Promise<void> {
    const { running, limits } = this.#sandbox
    const init = running.initPid()
    if (init === undefined) return
    const files = running.filesPid?.()
    const { nproc } = limits.bounds
    if (nproc !== undefined && running.sharesHost !== true)
      for (const pid of files === undefined ? [init] : [init, files]) await setProcessLimit(pid, { nproc })
    limits.attach(init, running.reach, files)
    running.full?.then(
      () => limits.reportFullPids(),
      () => undefined,
    )
  }

  #watchGitlinks(): GitlinkWatch | undefined {
    const { prepared, repository } = this.#sandbox
    const { git, records, enclosing } = prepared.facts.repository
    const { workspace } = prepared.plan
    const own = git !== undefined && repository !== undefined ? { git, records, workspace } : undefined
    if (
      prepared.plan.soft ||
      prepared.plan.layer !== undefined ||
      (own === undefined && enclosing.length === 0)
    )
      return undefined
    return new GitlinkWatch({
      workspace,
      own,
      enclosing,
      stateDir: prepared.loaded.project.shared.stateDir,
      mounted: repository?.mounted ?? new MountedPlaces(workspace, heldPointers(prepared)),
      onEnd: line => {
        this.#lines.push(line)
        this.#end(line)
      },
    })
  }

  #watchPlaces(failed: (error: unknown) => void): PlaceWatch {
    const { prepared, running, limits, audit, watchRecord } = this.#sandbox
    return new PlaceWatch({
      loaded: prepared.loaded,
      facts: prepared.facts,
      running,
      watchRecord,
      whilePaused: canBePaused(running) ? act => limits.whilePaused(act) : act => act(),
      onEnd: why => this.#end(why),
      tell: line => this.#lines.push(line),
      record: event => {
        try {
          audit.record(event)
        } catch (error) {
          failed(error)
        }
      },
    })
  }

  #end(why: string): void {
    this.#why ??= why
    this.#sandbox.running.kill()
  }

  /** Recorded before the command starts: a run that cannot be recorded does not start. */
  #recordStart(): void {
    const { audit, prepared } = this.#sandbox
    audit.record({
      kind: 'run-start',
      policy: policyData(prepared.loaded.policy),
      backend: prepared.plan.backend,
      pen: version,
      bun: process.versions.bun ?? '',
      kernel: kernelRelease(),
      os: process.platform,
    })
  }

  /** Records each hit once: some are seen during the run and again in the final counters. */
  #recordHit(hit: LimitHit): void {
    const event = `${hit.limit} ${hit.what}`
    if (this.#recorded.has(event)) return
    this.#sandbox.audit.record({ kind: 'limit-hit', ...recordOf(hit) })
    this.#recorded.add(event)
  }

  /** Recorded before the kill: a client looks for the reason as soon as its command has ended. */
  #endByWall(stopping: Stopping): void {
    if (stopping.reason !== undefined) return
    const { wall } = this.#sandbox.prepared.plan.limits
    const hit: LimitHit = { limit: 'wall', what: 'killed', used: wall, bound: wall, amount: 1 }
    try {
      this.#recordHit(hit)
      this.#lines.push(tellHit(hit))
      this.#sandbox.refusals.note(tellHit(hit))
      stopping.ask('wall')
    } catch (error) {
      stopping.failed(error)
    }
  }

  #exitCode(ending: Ending, stopping: Stopping, hits: readonly LimitHit[]): ExitCode {
    if (stopping.reason === 'wall') return EXIT.timeout
    if (ending.kind === 'exit' && !hits.some(hit => hit.what === 'killed')) return ending.code
    return 128 + 9
  }
}

/** The sandbox may have locked the project. */
function mayExist(path: string): boolean {
  try {
    return lookAt(path) !== undefined
  } catch (error) {
    if (error instanceof Unseen) return true
    throw error
  }
}

const tellHit = (hit: LimitHit): string => `limit: ${describeHit(hit)}; to raise it: ${raiseLimit(hit)}`

const recordOf = (hit: LimitHit) => ({
  limit: hit.limit,
  value: `${hit.used} of ${hit.bound}`,
  reason: hit.what,
  why: describeHit(hit),
  fix: raiseLimit(hit),
})
