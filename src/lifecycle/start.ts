/** Starts a sandbox that stays, by leaving a supervisor for it, and waits until it is ready or has failed. */
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

/** A supervisor that neither answers nor ends: longer than the slowest engine takes to be ready. */
const PATIENCE_MS = 60_000
const LOOK_MS = 20

/** `again`: with the flags of a former start, so it belongs to whoever made that one. */
export type Started = 'started' | 'again' | 'already'

export interface Start {
  /** What is asked for now. The flags of a former start hold as well, until `pen stop`. */
  readonly asked: SupervisorOrder
  readonly say: (line: string) => void
  /** For a verb that is not about starting: its user hears that there is a sandbox now. */
  readonly isAnnounced?: boolean
  /** Whoever could start one before it knew more. */
  readonly spare?: SpareSupervisor
  /** The program whose sandbox it will be. It gets what it asks for, or nothing. */
  readonly owner?: ProcessIdentity | null
}

/** Whoever comes second, of however many, finds it running. */
export const startSandbox = (project: Project, start: Start): Promise<Started> =>
  withChangeLock(project.stateDir, () => startUnlessRunning(project, start))

/** For whoever holds the lock of changes. */
export async function startUnlessRunning(project: Project, start: Start): Promise<Started> {
  const spare = start.spare ?? new SpareSupervisor()
  try {
    return await useUnlessRunning(project, start, spare)
  } finally {
    spare.dismiss()
  }
}

async function useUnlessRunning(
  { stateDir, world }: Project,
  { asked, say, owner = null, isAnnounced = false }: Start,
  spare: SpareSupervisor,
): Promise<Started> {
  // One may be on its way whose starter was killed: it gives up when it sees that, or it is ready.
  for (const deadline = Date.now() + PATIENCE_MS; ; await Bun.sleep(LOOK_MS)) {
    if (await isAnswering(stateDir)) return 'already'
    const presence = await presenceOf(stateDir)
    if (presence.is === 'absent') break
    if (Date.now() > deadline) throw hung(stateDir, presence.owner?.pid)
  }
  const { came, held, ...followed } = orderFor(stateDir, asked, owner)
  const { log } = statePaths(stateDir)
  rmSync(log, { force: true })
  const { workspace, state } = world
  spare.assign({ ...followed, workspace, stateDir, cacheDir: `${state}/cache`, debug: areShown() })
  phase('supervisor asked')
  await untilReady(spare.report, log, say)
  phase('sandbox ready')
  if (held !== undefined) say(`started again with the flags of its last start: ${held}; pen stop drops them`)
  else if (isAnnounced)
    say(`started the sandbox of this project${came === 'again' ? ' again' : ''}; pen stop ends it`)
  return came
}

interface Followed extends Pick<SupervisorInput, 'order' | 'backend' | 'owner'> {
  readonly came: 'started' | 'again'
  /** The flags that hold though nobody gave them now. */
  readonly held?: string
}

/** The one place that decides what a start follows: never less than the start which nobody has stopped. */
function orderFor(stateDir: string, asked: SupervisorOrder, owner: ProcessIdentity | null): Followed {
  const stored = readStoredOrder(stateDir)
  if (stored === undefined) return { came: 'started', order: asked, backend: null, owner }
  const { order: before, backend } = stored
  const isSame = Bun.deepEquals(before, asked)
  // A program may change its own mind.
  if (owner !== null && Bun.deepEquals(stored.owner, owner))
    return { came: 'started', order: asked, backend: isSame ? backend : null, owner }
  const order = mergeOrders(before, asked)
  if (hasNoFlags(before) && !hasNoFlags(asked)) return { came: 'started', order, backend, owner }
  if (owner !== null && !hasNoFlags(asked) && !isSame)
    throw otherPolicy('was started, and not stopped since,')
  const followed = { came: 'again', order, backend, owner: stored.owner } as const
  return hasNoFlags(before) || isSame ? followed : { ...followed, held: describeOrder(before) }
}

export const otherPolicy = (state: string): PenError =>
  new PenError('STATE', {
    what: `the sandbox of this project ${state} by another policy`,
    hint: 'pen stop ends it; or start without a policy, to join it as it is',
  })

const hung = (at: string, pid: number | undefined): PenError =>
  new PenError('STATE', {
    what: `the supervisor of this sandbox ${pid === undefined ? '' : `(process ${pid}) `}does not answer`,
    at,
    hint: 'pen stop ends it',
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
    what: `the supervisor ended before the sandbox was ready${lastWords(log)}`,
    at: log,
    hint: 'try again; if it happens again, report it with the file named here',
  })
}

function lastWords(log: string): string {
  const text = existsSync(log) ? readFileSync(log, 'utf8').trim() : ''
  return text === '' ? '' : `: ${text.slice(text.lastIndexOf('\n') + 1).slice(0, 300)}`
}
