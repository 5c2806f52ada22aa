/** Starts a supervisor that keeps running, and waits until its sandbox is ready or has failed. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { PenError } from '../base/error.ts'
import type { ProcessIdentity } from '../base/kernel/processes.ts'
import { areShown, phase } from '../base/phases.ts'
import type { Project } from '../config/project.ts'
import { isAnswering } from '../control/client.ts'
import { asPenError } from '../control/messages.ts'
import { presenceOf, statePaths, withChangeLock } from '../control/state.ts'
import { readStoredOrder } from '../control/stored-order.ts'
import {
  describeOrder,
  hasNoFlags,
  mergeOrders,
  ReportLines,
  type SupervisorInput,
  type SupervisorOrder,
} from '../control/supervisor-order.ts'
import { SpareSupervisor } from './spare-supervisor.ts'

/** For a supervisor that neither answers nor ends. The slowest engine is ready sooner. */
const TIMEOUT_MS = 60_000
const POLL_MS = 20

/** `again`: started with the flags of an earlier start, so it belongs to the owner of that start. */
export type Started = 'started' | 'again' | 'already'

export interface Start {
  /** The order of this start. The flags of an earlier start also apply, until `pen stop`. */
  readonly asked: SupervisorOrder
  readonly say: (line: string) => void
  /** Says that the sandbox was started, for a verb whose purpose is something else. */
  readonly isAnnounced?: boolean
  /** A supervisor that the caller started early. */
  readonly spare?: SpareSupervisor
  /** The program that will own the sandbox. It gets exactly its order, or an error. */
  readonly owner?: ProcessIdentity | null
}

/** Concurrent starts are serialized: the first one starts the sandbox, the others find it running. */
export const startSandbox = (project: Project, start: Start): Promise<Started> =>
  withChangeLock(project.stateDir, () => startUnlessRunning(project, start))

/** The caller holds the change lock. */
export async function startUnlessRunning(
  { name, stateDir, shared, world: { workspace, state } }: Project,
  { asked, say, owner = null, isAnnounced = false, spare = new SpareSupervisor() }: Start,
): Promise<Started> {
  try {
    // A supervisor may be starting whose `pen start` was killed. It either ends or becomes ready.
    for (const deadline = Date.now() + TIMEOUT_MS; ; await Bun.sleep(POLL_MS)) {
      if (await isAnswering(stateDir)) return 'already'
      const presence = await presenceOf(stateDir)
      if (presence.is === 'absent') break
      if (Date.now() > deadline) throw hung(stateDir, presence.owner?.pid)
    }
    const { came, held, ...effective } = orderFor(stateDir, asked, owner)
    const { log } = statePaths(stateDir)
    rmSync(log, { force: true })
    const places = {
      workspace,
      name: name ?? null,
      stateDir,
      sharedDir: shared.stateDir,
      cacheDir: `${state}/cache`,
    }
    spare.assign({ ...effective, ...places, debug: areShown() })
    phase('supervisor asked')
    await untilReady(spare.report, log, say)
    phase('sandbox ready')
    if (held !== undefined) say(`started again with the flags of its last start${held}; pen stop drops them`)
    else if (isAnnounced)
      say(`started the sandbox of this project${came === 'again' ? ' again' : ''}; pen stop ends it`)
    return came
  } finally {
    spare.dismiss()
  }
}

interface EffectiveOrder extends Pick<SupervisorInput, 'order' | 'backend' | 'owner'> {
  readonly came: 'started' | 'again'
  /** Names the flags in force, if those of the earlier start are among them. */
  readonly held?: string
}

/** The only place that decides which flags apply. A start is never weaker than one that was not stopped. */
function orderFor(stateDir: string, asked: SupervisorOrder, owner: ProcessIdentity | null): EffectiveOrder {
  const stored = readStoredOrder(stateDir)
  if (stored === undefined) return { came: 'started', order: asked, backend: null, owner }
  const { order: before, backend } = stored
  const isSame = Bun.deepEquals(before, asked)
  // The owner may replace its own order.
  if (owner !== null && Bun.deepEquals(stored.owner, owner))
    return { came: 'started', order: asked, backend: isSame ? backend : null, owner }
  if (hasNoFlags(before) && !hasNoFlags(asked))
    return { came: 'started', order: mergeOrders(before, asked), backend, owner }
  if (owner !== null && !hasNoFlags(asked) && !isSame) throw otherPolicy('was started')
  const order = mergeOrders(before, asked)
  const effective = { came: 'again', order, backend, owner: stored.owner } as const
  if (hasNoFlags(before) || isSame) return effective
  // A new flag may have replaced an earlier one.
  return { ...effective, held: `${hasNoFlags(asked) ? '' : ' and new ones'}: ${describeOrder(order)}` }
}

export const otherPolicy = (state: string): PenError =>
  new PenError('STATE', {
    what: `the sandbox of this project ${state} with another policy`,
    hint: 'pen stop; or start without a policy to join it',
  })

const hung = (at: string, pid: number | undefined): PenError =>
  new PenError('STATE', {
    what: `the supervisor of this sandbox ${pid === undefined ? '' : `(process ${pid}) `}does not answer`,
    at,
    hint: 'pen stop',
  })

async function untilReady(reader: number, log: string, say: (line: string) => void): Promise<void> {
  const lines = new ReportLines()
  for await (const bytes of Bun.file(reader).stream() as AsyncIterable<Uint8Array>)
    for (const line of lines.push(bytes)) {
      if ('ready' in line) return
      if ('failed' in line) throw asPenError(line.failed)
      say(line.say)
    }
  throw new PenError('STATE', {
    what: `the supervisor ended before the sandbox was ready${lastLogLine(log)}`,
    at: log,
    hint: 'try again; if it fails again, report it with this file',
  })
}

function lastLogLine(log: string): string {
  const text = existsSync(log) ? readFileSync(log, 'utf8').trim() : ''
  return text === '' ? '' : `: ${text.slice(text.lastIndexOf('\n') + 1).slice(0, 300)}`
}
