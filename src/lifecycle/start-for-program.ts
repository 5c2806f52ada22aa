/**
 * `pen __start`: `pen start` for the library. It reads an order from stdin and prints one line of JSON. Locks, engines and policies
 * therefore stay in the binary.
 */
import { readFileSync } from 'node:fs'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { startTimeOf } from '../base/kernel/processes.ts'
import { findProject, type Project } from '../config/project.ts'
import { isRunningWith, requestValue } from '../control/client.ts'
import { type SerializedError, serializeError } from '../control/messages.ts'
import { hasNoFlags, type SupervisorOrder, writeJson } from '../control/supervisor-order.ts'
import type { SandboxStatus } from '../run/status.ts'
import { otherPolicy, startSandbox } from './start.ts'

interface StartOrder {
  /** A config document, like the flags of `pen start`. */
  readonly policy: object
  readonly offline: boolean
  readonly name: string | undefined
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
    writeJson(1, await start(readOrder()))
    return EXIT.ok
  } catch (error) {
    writeJson(1, { ok: false, error: serializeError(error) } satisfies StartAnswer)
    return error instanceof PenError ? error.exitCode : EXIT.pen
  }
}

async function start({ policy, offline, name }: StartOrder): Promise<StartAnswer> {
  refuseInside()
  const project = findProject(undefined, name)
  checkWhole(project)
  const { id, stateDir } = project
  const asked: SupervisorOrder = { id, flags: policy, offline, allowUserExpansion: false }
  const notes: string[] = []
  const owner = { pid: process.ppid, startTime: startTimeOf(process.ppid) ?? '' }
  const came = await startSandbox(project, { asked, say: line => void notes.push(line), owner })
  // A program without a policy joins the sandbox as it is.
  if (came === 'already' && !hasNoFlags(asked) && !(await isRunningWith(stateDir, asked)))
    throw otherPolicy('already runs')
  const status = await requestValue(stateDir, 'status')
  if (status === undefined)
    throw new PenError('STATE', {
      what: 'the sandbox ended right after its start',
      hint: 'pen logs --all',
    })
  return {
    ok: true,
    started: came === 'started',
    stateDir,
    status: status.value as SandboxStatus,
    notes,
  }
}

function readOrder(): StartOrder {
  try {
    const { policy, offline, name } = JSON.parse(readFileSync(0, 'utf8')) as Record<string, unknown>
    if (
      typeof policy === 'object' &&
      policy !== null &&
      !Array.isArray(policy) &&
      typeof offline === 'boolean' &&
      (name === undefined || typeof name === 'string')
    )
      return { policy, offline, name }
  } catch {
    // Throws below.
  }
  throw new PenError('USAGE', { what: '__start is not a verb: the library runs it' })
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
