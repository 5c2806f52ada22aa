/**
 * `pen __start`: `pen start` for the library. It reads an order from stdin and prints one line of JSON. Locks, engines and policies
 * therefore stay in the binary.
 */
import { readFileSync, writeSync } from 'node:fs'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { startTimeOf } from '../base/kernel/processes.ts'
import { findProject, type Project } from '../config/project.ts'
import { requestOrder, requestValue, takeValue } from '../control/client.ts'
import { type SerializedError, serializeError } from '../control/messages.ts'
import { hasNoFlags, type SupervisorOrder } from '../control/supervisor-order.ts'
import type { SandboxStatus } from '../run/status.ts'
import { otherPolicy, startSandbox } from './start.ts'

export interface StartOrder {
  /** A config document, like the flags of `pen start`. */
  readonly policy: object
  readonly offline: boolean
  readonly allowUserExpansion: boolean
}

export type StartAnswer =
  | {
      readonly ok: true
      /** False when the sandbox was already running. */
      readonly started: boolean
      readonly stateDir: string
      readonly status: SandboxStatus
      readonly notes: readonly string[]
    }
  | { readonly ok: false; readonly error: SerializedError }

export async function startForProgram(): Promise<ExitCode> {
  try {
    answer(await start(readOrder()))
    return EXIT.ok
  } catch (error) {
    answer({ ok: false, error: serializeError(error) })
    return error instanceof PenError ? error.exitCode : EXIT.pen
  }
}

function answer(value: StartAnswer): void {
  const bytes = Buffer.from(`${JSON.stringify(value)}\n`)
  for (let done = 0; done < bytes.length; ) done += writeSync(1, bytes, done)
}

async function start(order: StartOrder): Promise<StartAnswer> {
  refuseInside()
  const project = findProject()
  checkWhole(project)
  const { id, stateDir } = project
  const keep: SupervisorOrder = {
    id,
    flags: order.policy,
    offline: order.offline,
    allowUserExpansion: order.allowUserExpansion,
  }
  const notes: string[] = []
  const owner = { pid: process.ppid, startTime: startTimeOf(process.ppid) ?? '' }
  const came = await startSandbox(project, { asked: keep, say: line => void notes.push(line), owner })
  if (came === 'already') checkSame(await requestOrder(stateDir), keep)
  const status = await requestValue(stateDir, 'status')
  if (status === undefined)
    throw new PenError('STATE', {
      what: 'the sandbox ended right after its start',
      hint: 'pen logs --all',
    })
  const value = takeValue({ ok: true, value: status.value }) as SandboxStatus
  return { ok: true, started: came === 'started', stateDir, status: value, notes }
}

function readOrder(): StartOrder {
  const wrong = new PenError('USAGE', { what: '__start is not a verb: the library runs it' })
  let value: unknown
  try {
    value = JSON.parse(readFileSync(0, 'utf8'))
  } catch {
    throw wrong
  }
  const { policy, offline, allowUserExpansion } = (value ?? {}) as Record<string, unknown>
  if (typeof policy !== 'object' || policy === null || Array.isArray(policy)) throw wrong
  if (typeof offline !== 'boolean' || typeof allowUserExpansion !== 'boolean') throw wrong
  return { policy, offline, allowUserExpansion }
}

function refuseInside(): void {
  const mark = process.env['AGENT_IN_SANDBOX']
  if (mark === undefined || mark === '' || mark === '0') return
  throw new PenError('INSIDE_SANDBOX', {
    what: 'a sandbox cannot be started inside a sandbox',
    at: 'AGENT_IN_SANDBOX',
    hint: 'start it on the host, outside',
  })
}

/** A program must not get a larger project than it named because pen has a config for a parent directory. */
function checkWhole({ cwd, world }: Project): void {
  if (cwd === world.workspace) return
  throw new PenError('PATH_REFUSED', {
    what: `${cwd} is part of the project ${world.workspace}`,
    hint: 'start that project, and set the cwd of each command',
  })
}

/** A program without a policy joins the sandbox as it is. */
function checkSame(running: SupervisorOrder | undefined, wanted: SupervisorOrder): void {
  if (!hasNoFlags(wanted) && !Bun.deepEquals(running, wanted)) throw otherPolicy('already runs')
}
