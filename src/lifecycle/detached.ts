/**
 * `pen __supervisor`: the supervisor that `pen start` leaves. It owns one sandbox from before its first process until after its last, and
 * whatever way it ends, the sandbox ends with it.
 */

import { closeSync, constants, existsSync, fstatSync, openSync, writeFileSync } from 'node:fs'
import { version } from '../../package.json'
import { newRunId } from '../audit/segment-name.ts'
import { HeadStart } from '../backend/container/head-start.ts'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { putInPlaceOf } from '../base/kernel/descriptor.ts'
import { startTimeOf } from '../base/kernel/processes.ts'
import { showPhases } from '../base/phases.ts'
import { sha256 } from '../base/sha256.ts'
import type { Lock } from '../config/lock.ts'
import { findProject } from '../config/project.ts'
import { serializeError } from '../control/messages.ts'
import { becomeSupervisor, removeRecordAndSocket, statePaths, writeRecord } from '../control/state.ts'
import { dropOrder, storeOrder } from '../control/stored-order.ts'
import {
  readSupervisorInput,
  report,
  type StartReport,
  type SupervisorInput,
} from '../control/supervisor-order.ts'
import type { ControlServer, Served } from '../run/control-server.ts'
import { liveState } from '../run/live-files.ts'

/** What is written to the log after the start; a sandbox that runs into its limits all day fills no disk. */
const MOST_LOGGED = 256 * 1024
const LOOK_MS = 2000

/** Somebody removed pen's state by hand: no command could ever find this sandbox again. */
const isForgotten = ({ fd }: Lock): boolean => fstatSync(fd).nlink === 0

export async function superviseDetached(): Promise<ExitCode> {
  const placed = readSupervisorInput()
  if (placed === undefined) return EXIT.ok
  const starter = new Starter()
  if (placed.debug) showPhases(line => starter.say(`supervisor ${line}`))
  try {
    return await superviseProject(placed, starter)
  } catch (error) {
    // Whatever broke by that, and wherever.
    const why = existsSync(placed.workspace) ? error : changed(placed.workspace)
    starter.tell({ failed: serializeError(why) })
    throw why
  }
}

const changed = (at: string): PenError =>
  new PenError('STATE', {
    what: 'the project was changed while its sandbox was being started',
    at,
    hint: 'try again',
  })

async function superviseProject(placed: SupervisorInput, starter: Starter): Promise<ExitCode> {
  const { order, workspace, stateDir } = placed
  process.chdir(workspace)
  logTo(statePaths(stateDir).log)
  const lock = await becomeSupervisor(stateDir)
  let headStart: HeadStart | undefined
  try {
    headStart = await beginAtOnce(placed)
    // From here on the engine is at it.
    const project = findProject()
    if (project.id !== order.id || project.stateDir !== stateDir) throw changed(project.world.workspace)
    const { runSandbox } = await import('../run/run-sandbox.ts')
    const agent = order.agent === undefined ? undefined : await agentOf(order.agent)
    await runSandbox({
      command: [],
      env: process.env,
      allowUserExpansion: order.allowUserExpansion,
      offline: order.offline,
      stays: { before: placed.backend },
      ...(agent !== undefined && { preset: agent.opening }),
      flags: () => order.flags,
      headStart,
      tell: line => starter.say(line),
      onPlan: prepared => agent?.begin(prepared, line => starter.say(line)),
      serve: async (serving, image) => {
        const server = await serve({ project, serving, order, image }, placed.owner, starter)
        const watching = setInterval(() => isForgotten(lock) && server.stop(), LOOK_MS)
        return () => {
          clearInterval(watching)
          const code = server.close()
          if (server.isStoppedForGood && !isForgotten(lock)) dropOrder(stateDir)
          return code
        }
      },
    })
    // Its end was what somebody wanted, or a limit: both are told elsewhere, and nobody waits for this code.
    return EXIT.ok
  } finally {
    await headStart?.dismiss()
    // What stands there otherwise is another supervisor's.
    if (!isForgotten(lock)) removeRecordAndSocket(stateDir)
    lock.release()
  }
}

async function agentOf(name: string) {
  const { openAgent } = await import('../run/agent-preset.ts')
  return openAgent(name, process.env)
}

/** For the same order, by the same live config and the same pen, the engine is mostly asked for the same. */
function beginAtOnce({ order, stateDir, cacheDir }: SupervisorInput): Promise<HeadStart> {
  // Hashed: there may be secrets in an order, and this is kept on disk.
  const key = sha256(JSON.stringify([version, order, liveState(stateDir)]))
  return HeadStart.begin({ id: order.id, run: newRunId(), stateDir }, key, cacheDir)
}

/** What this process says from now on, also in its last words. */
function logTo(path: string): void {
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants
  const fd = openSync(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600)
  putInPlaceOf(fd, 2)
  closeSync(fd)
}

async function serve(
  sandbox: Omit<Served, 'since'>,
  owner: SupervisorInput['owner'],
  starter: Starter,
): Promise<ControlServer> {
  const { project, serving, image } = sandbox
  const { ControlServer } = await import('../run/control-server.ts')
  const { plan } = serving.prepared
  writeFileSync(`${project.stateDir}/workspace`, `${plan.workspace}\n`, { mode: 0o600 })
  await serving.running.ready
  const since = new Date().toISOString()
  const server = new ControlServer({ ...sandbox, since })
  writeRecord(project.stateDir, {
    pid: process.pid,
    startTime: startTimeOf(process.pid) ?? '0',
    run: serving.audit.run,
    workspace: plan.workspace,
    backend: plan.backend,
    isolation: plan.isolation,
    image,
    since,
  })
  // Before anybody can rely on it: whatever ends this sandbox now, the next start finds its flags.
  const restoreOrder = storeOrder(project.stateDir, { order: sandbox.order, backend: plan.backend, owner })
  // If the starter died, stop the sandbox that it asked for. Until now nobody else was answered.
  if (starter.ready()) server.answer()
  else {
    restoreOrder()
    server.stop()
  }
  return server
}

/** Whoever ran `pen start`, for as long as it waits; afterwards the log. */
class Starter {
  #waits: boolean = true
  #logged = 0

  say(line: string): void {
    if (this.#waits) this.tell({ say: line })
    else this.#log(line)
  }

  ready(): boolean {
    const heard = this.tell({ ready: true })
    this.#waits = false
    return heard
  }

  tell(line: StartReport): boolean {
    if (!this.#waits) return false
    try {
      report(line)
      return true
    } catch {
      this.#waits = false
      return false
    }
  }

  #log(line: string): void {
    const isFull = this.#logged >= MOST_LOGGED
    this.#logged += line.length + 1
    if (this.#logged < MOST_LOGGED) process.stderr.write(`${line}\n`)
    else if (!isFull)
      process.stderr.write('pen: this log is full: later lines are not written; see pen logs\n')
  }
}
