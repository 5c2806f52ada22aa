/**
 * `pen __supervisor`: the supervisor process that `pen start` leaves running. It owns one sandbox from before its first process until
 * after its last. However the supervisor ends, the sandbox ends with it.
 */

import { closeSync, constants, existsSync, fstatSync, openSync } from 'node:fs'
import { version } from '../../package.json'
import { newRunId } from '../audit/segment-name.ts'
import { HeadStart } from '../backend/container/head-start.ts'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { putInPlaceOf } from '../base/kernel/descriptor.ts'
import { showPhases } from '../base/phases.ts'
import { sha256 } from '../base/sha256.ts'
import type { Lock } from '../config/lock.ts'
import { findProject, rememberWorkspace } from '../config/project.ts'
import { serializeError } from '../control/messages.ts'
import { becomeSupervisor, removeRecordAndSocket, statePaths, writeRecord } from '../control/state.ts'
import { dropOrder, storeOrder } from '../control/stored-order.ts'
import {
  readSupervisorInput,
  report,
  type StartReport,
  type SupervisorInput,
} from '../control/supervisor-order.ts'
import { openAgent } from '../run/agent-preset.ts'
import { ControlServer, type Served } from '../run/control-server.ts'
import { liveState } from '../run/live-files.ts'
import { runSandbox } from '../run/run-sandbox.ts'

/** Bounds the log after the start: a sandbox that reaches its limits all day must not fill the disk. */
const MAX_LOG = 256 * 1024
const POLL_MS = 2000

/** The state directory was deleted by hand, so no command can find this sandbox again. */
const isStateDeleted = ({ fd }: Lock): boolean => fstatSync(fd).nlink === 0

export async function superviseDetached(): Promise<ExitCode> {
  const input = readSupervisorInput()
  if (input === undefined) return EXIT.ok
  const starter = new Starter()
  if (input.debug) showPhases(line => starter.say(`supervisor ${line}`))
  try {
    return await superviseProject(input, starter)
  } catch (error) {
    // A deleted project breaks many steps. Report that cause instead.
    const why = existsSync(input.workspace) ? error : changed(input.workspace)
    starter.tell({ failed: serializeError(why) })
    throw why
  }
}

const changed = (at: string): PenError =>
  new PenError('STATE', {
    what: 'the project changed while its sandbox was starting',
    at,
    hint: 'try again',
  })

async function superviseProject(input: SupervisorInput, starter: Starter): Promise<ExitCode> {
  const { order, workspace, name, stateDir } = input
  process.chdir(workspace)
  logTo(statePaths(stateDir).log)
  const lock = await becomeSupervisor(stateDir)
  let headStart: HeadStart | undefined
  try {
    headStart = await beginHeadStart(input)
    // The engine now works in parallel.
    const project = findProject(undefined, name ?? undefined)
    if (project.id !== order.id || project.stateDir !== stateDir) throw changed(project.world.workspace)
    const agent = order.agent === undefined ? undefined : openAgent(order.agent, process.env)
    await runSandbox({
      project,
      command: [],
      env: process.env,
      allowUserExpansion: order.allowUserExpansion,
      offline: order.offline,
      stays: { before: input.backend },
      ...(agent !== undefined && { preset: agent.opening }),
      flags: order.flags,
      headStart,
      tell: line => starter.say(line),
      onPlan: prepared => agent?.begin(prepared, line => starter.say(line)),
      serve: async (serving, image) => {
        const server = await serve({ project, serving, order, image }, input.owner, starter)
        const watching = setInterval(() => isStateDeleted(lock) && server.stop(), POLL_MS)
        return () => {
          clearInterval(watching)
          const code = server.close()
          if (server.isStoppedForGood && !isStateDeleted(lock)) dropOrder(stateDir)
          return code
        }
      },
    })
    // `pen stop` or a limit ended the sandbox. Both are reported elsewhere, and no process waits for this exit code.
    return EXIT.ok
  } finally {
    await headStart?.dismiss()
    // With a deleted state directory, the files at that path belong to another supervisor.
    if (!isStateDeleted(lock)) removeRecordAndSocket(stateDir)
    lock.release()
  }
}

/** The same order, live config and version of pen mostly need the same container as the last start. */
function beginHeadStart({ order, stateDir, sharedDir, cacheDir }: SupervisorInput): Promise<HeadStart> {
  // Hashed, because an order may contain secrets and the key is stored on disk.
  const key = sha256(JSON.stringify([version, order, liveState(sharedDir)]))
  return HeadStart.begin({ id: order.id, run: newRunId(), stateDir }, key, cacheDir)
}

/** Redirects stderr to the log, also for a crash. */
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
  const { plan } = serving.prepared
  rememberWorkspace(project)
  await serving.running.ready
  const since = new Date().toISOString()
  const server = new ControlServer({ ...sandbox, since })
  writeRecord(project.stateDir, {
    pid: process.pid,
    run: serving.audit.run,
    workspace: plan.workspace,
    backend: plan.backend,
    isolation: plan.isolation,
    image,
    since,
  })
  // Store the order before the first answer: whatever ends the sandbox later, the next start finds its flags.
  const restoreOrder = storeOrder(project.stateDir, { order: sandbox.order, backend: plan.backend, owner })
  // If `pen start` died, stop the sandbox that it asked for. No other client was answered yet.
  if (starter.ready()) server.answer()
  else {
    restoreOrder()
    server.stop()
  }
  return server
}

/** Sends messages to `pen start` while it waits, and to the log afterwards. */
class Starter {
  #waits: boolean = true
  #logged = 0

  say(line: string): void {
    if (this.#waits) this.tell({ say: line })
    else this.#log(line)
  }

  ready(): boolean {
    const isReceived = this.tell({ ready: true })
    this.#waits = false
    return isReceived
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
    const isFull = this.#logged >= MAX_LOG
    this.#logged += line.length + 1
    if (this.#logged < MAX_LOG) process.stderr.write(`${line}\n`)
    else if (!isFull)
      process.stderr.write('pen: this log is full: later lines are not written; see pen logs\n')
  }
}
