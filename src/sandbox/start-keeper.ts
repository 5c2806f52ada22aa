/** Starts a sandbox that stays, by leaving a keeper for it, and waits until it is ready or has failed. */
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs'
import { memoryFile, pipe, rememberChildren } from '../backend/process/libc.ts'
import { PenError } from '../base/error.ts'
import { ownProgram } from '../base/own-program.ts'
import type { Project } from '../config/project.ts'
import { answers } from './control-client.ts'
import { asPenError } from './control-messages.ts'
import { KEEP_MODE, type KeepOrder, ReportLines } from './keep-order.ts'
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
): Promise<Started> => whileChanging(project.stateDir, () => startUnlessKept(project, order, say))

/** For whoever holds the lock of changes. */
export async function startUnlessKept(
  project: Project,
  order: KeepOrder,
  say: (line: string) => void,
): Promise<Started> {
  const { stateDir } = project
  // One may be on its way whose starter was killed: it gives up when it sees that, or it is ready.
  for (const deadline = Date.now() + PATIENCE_MS; ; await Bun.sleep(LOOK_MS)) {
    if (await answers(stateDir)) return 'already'
    const presence = await presenceOf(stateDir)
    if (presence.is === 'absent') break
    if (Date.now() > deadline) throw hung(stateDir, presence.owner?.pid)
  }
  await leaveKeeper(project, order, say)
  return 'started'
}

const hung = (at: string, pid: number | undefined): PenError =>
  new PenError('STATE', {
    what: `the keeper of this sandbox ${pid === undefined ? '' : `(process ${pid}) `}does not answer`,
    at,
    hint: 'pen stop ends it',
  })

async function leaveKeeper(project: Project, order: KeepOrder, say: (line: string) => void): Promise<void> {
  const { log } = placesOf(project.stateDir)
  rememberChildren()
  const orderFd = memoryFile()
  const [reader, writer] = pipe()
  const { O_WRONLY, O_CREAT, O_TRUNC, O_APPEND, O_NOFOLLOW } = constants
  const logFd = openSync(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0o600)
  try {
    // At an offset, so that it is read from the beginning.
    const bytes = Buffer.from(JSON.stringify(order))
    for (let done = 0; done < bytes.length; )
      done += writeSync(orderFd, bytes, done, bytes.length - done, done)
    const child = Bun.spawn([...ownProgram(), KEEP_MODE], {
      stdio: [orderFd, 'ignore', logFd, writer],
      // A session of its own: no terminal that closes, and no Ctrl-C, is meant for it.
      detached: true,
      env: { ...process.env },
      cwd: project.world.workspace,
    } as Parameters<typeof Bun.spawn>[1])
    child.unref()
  } finally {
    for (const fd of [orderFd, writer, logFd]) closeSync(fd)
  }
  await untilReady(reader, log, say)
}

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
  const text = readFileSync(log, 'utf8').trim()
  return text === '' ? '' : `: ${text.slice(text.lastIndexOf('\n') + 1).slice(0, 300)}`
}
