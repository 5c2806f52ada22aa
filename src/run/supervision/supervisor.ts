/**
 * The host-side owner of one running sandbox: limits, wall time, protected places and audit. Nothing inside can reach it. When it dies,
 * the guard ends the sandbox.
 */
import { version } from '../../../package.json'
import type { Audit } from '../../audit/append.ts'
import type { RefusalTally } from '../../audit/refusals.ts'
import type { Ending, Running } from '../../backend/backend.ts'
import { EXIT, type ExitCode } from '../../base/error.ts'
import { kernelRelease } from '../../base/kernel/kernel-facts.ts'
import { phase } from '../../base/phases.ts'
import type { Egress } from '../../gateway/egress.ts'
import type { Vault } from '../../gateway/secrets/vault.ts'
import type { LimitHit } from '../../limits/limit-hit.ts'
import type { LimitHandle } from '../../limits/limits.ts'
import { setProcessLimit } from '../../limits/prlimit.ts'
import { policyData } from '../../plan/data.ts'
import type { WatchRecord } from '../../protect/watch-record.ts'
import type { OwnRepository } from '../../repository/own-repository.ts'
import { describeProject } from '../describe-project.ts'
import type { Forwards } from '../forwards.ts'
import { LivePolicy } from '../live-policy.ts'
import type { Prepared } from '../prepare.ts'
import { adoptMade } from './adopt-made.ts'
import { LimitReports } from './limit-reports.ts'
import { openSshAgent } from './open-ssh-agent.ts'
import { serveFiles } from './serve-files.ts'
import { passSignals, Stopping } from './stopping.ts'
import { type WatchOptions, watchGitlinks, watchPlaces } from './watch-project.ts'

/** Shorter runs lose more by compiling than they gain: the end of a run took five milliseconds instead of two. */
const WORTH_COMPILING_MS = 100

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
    const reports = new LimitReports(audit, refusals, this.#lines)
    const wall = setTimeout(() => {
      if (stopping.reason !== undefined) return
      try {
        reports.beforeWall(plan.limits.wall)
        stopping.ask('wall')
      } catch (error) {
        stopping.failed(error)
      }
    }, plan.limits.wall)
    let compiling: NodeJS.Timeout | undefined
    let stopPauses = (): void => undefined
    try {
      this.#recordStart()
      limits.onHit(hit => {
        try {
          reports.during(hit)
        } catch (error) {
          stopping.failed(error)
        }
      })
      await this.#bound()
      await this.#forwardPorts()
      const network = this.#openNetwork(error => stopping.failed(error))
      const watch = this.#watchOptions()
      const places = watchPlaces(watch, error => stopping.failed(error))
      const gitlinks = watchGitlinks(watch)
      const agent = openSshAgent(this.#sandbox, error => stopping.failed(error))
      running.begin(audit)
      this.#sandbox.repository?.watch(event => audit.record(event))
      phase(isCommand ? 'command started' : 'exec daemon started')
      const files = serveFiles(this.#sandbox, this.#lines)
      if (plan.layer !== undefined) stopPauses = (await import('../pause.ts')).servePauses(this.#sandbox)
      const working = this.#workload(stopping)
      // From here on there may be hours of traffic, so compiling pays.
      compiling = setTimeout(() => Bun.unsafe.setJITPolicy(1), WORTH_COMPILING_MS)
      const ending = await running.ended.finally(() => files.finish().finally(() => places.finish()))
      agent?.close()
      this.#lines.push(...(gitlinks?.finish() ?? []))
      phase(isCommand ? 'command ended' : 'sandbox ended')
      const asked = await working
      this.#sandbox.forwarding.close()
      await network.finish(stopping)
      if (stopping.failure !== undefined) throw stopping.failure
      const hits = reports.atEnd(await limits.finish())
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

  async #finishRepository(): Promise<readonly string[]> {
    const { repository, prepared, audit } = this.#sandbox
    if (repository !== undefined) return await repository.finish()
    const { lines, isTaken } = await adoptMade(prepared, audit)
    this.#isTaken = isTaken
    return lines
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

  #watchOptions(): WatchOptions {
    return {
      sandbox: this.#sandbox,
      end: why => {
        this.#why ??= why
        this.#sandbox.running.kill()
      },
      tell: line => void this.#lines.push(line),
    }
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

  #exitCode(ending: Ending, stopping: Stopping, hits: readonly LimitHit[]): ExitCode {
    if (stopping.reason === 'wall') return EXIT.timeout
    if (ending.kind === 'exit' && !hits.some(hit => hit.what === 'killed')) return ending.code
    return 128 + 9
  }
}
