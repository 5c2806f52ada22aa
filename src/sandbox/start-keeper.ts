/** Starts a sandbox that stays, by leaving a keeper for it, and waits until it is ready or has failed. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { PenError } from '../base/error.ts'
import type { Project } from '../config/project.ts'
import { answers } from './control-client.ts'
import { asPenError } from './control-messages.ts'
import { type KeepOrder, ReportLines } from './keep-order.ts'
import { SpareKeeper } from './spare-keeper.ts'
import { placesOf, presenceOf, whileChanging } from './store.ts'

/** A keeper that neither answers nor ends: longer than the slowest engine takes to be ready. */
const PATIENCE_MS = 60_000
const LOOK_MS = 20

export type Started = 'started' | 'already'

/** Whoever comes second, of however many, finds it running. */
export const startSandbox = (
  project: Project,
  order: KeepOrder,
  say: (line: string) => void,
  spare?: SpareKeeper,
): Promise<Started> => whileChanging(project.stateDir, () => startUnlessKept(project, order, say, spare))

/** For whoever holds the lock of changes. */
export async function startUnlessKept(
  project: Project,
  order: KeepOrder,
  say: (line: string) => void,
  /** Whoever could start one before it knew more. */
  spare = new SpareKeeper(),
): Promise<Started> {
  try {
    return await employUnlessKept(project, order, say, spare)
  } finally {
    spare.dismiss()
  }
}

async function employUnlessKept(
  { stateDir, world }: Project,
  order: KeepOrder,
  say: (line: string) => void,
  spare: SpareKeeper,
): Promise<Started> {
  // One may be on its way whose starter was killed: it gives up when it sees that, or it is ready.
  for (const deadline = Date.now() + PATIENCE_MS; ; await Bun.sleep(LOOK_MS)) {
    if (await answers(stateDir)) return 'already'
    const presence = await presenceOf(stateDir)
    if (presence.is === 'absent') break
    if (Date.now() > deadline) throw hung(stateDir, presence.owner?.pid)
  }
  const { log } = placesOf(stateDir)
  rmSync(log, { force: true })
  spare.employ({ order, workspace: world.workspace, stateDir, cacheDir: `${world.state}/cache` })
  await untilReady(spare.report, log, say)
  return 'started'
}

const hung = (at: string, pid: number | undefined): PenError =>
  new PenError('STATE', {
    what: `the keeper of this sandbox ${pid === undefined ? '' : `(process ${pid}) `}does not answer`,
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
    what: `the keeper ended before the sandbox was ready${lastWords(log)}`,
    at: log,
    hint: 'try again; if it happens again, report it with the file named here',
  })
}

function lastWords(log: string): string {
  const text = existsSync(log) ? readFileSync(log, 'utf8').trim() : ''
  return text === '' ? '' : `: ${text.slice(text.lastIndexOf('\n') + 1).slice(0, 300)}`
}
