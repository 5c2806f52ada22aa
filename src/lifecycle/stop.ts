/** Stops a sandbox: by a request, then by SIGTERM, then by SIGKILL to its supervisor. */
import { lstatSync, readFileSync } from 'node:fs'
import { PenError } from '../base/error.ts'
import { requestStop, type StopKind } from '../control/client.ts'
import { type Presence, presenceOf, signalSupervisor, statePaths } from '../control/state.ts'
import { dropOrder } from '../control/stored-order.ts'

/** The supervisor's grace period, and the time to remove a container. */
const REQUEST_MS = 10_000
/** For a supervisor that does not answer. */
const SIGTERM_MS = 3000
const SIGKILL_MS = 5000
const POLL_MS = 10

export type Stopped = 'stopped' | 'absent'

/** The caller holds the change lock. Prints what the end of `pen run` prints. When it returns, every process of the sandbox has ended. */
export async function stopSandbox(
  stateDir: string,
  say: (line: string) => void = () => undefined,
): Promise<Stopped> {
  const came = await endSandbox(stateDir, 'stop', say)
  // A killed supervisor does not drop its order.
  dropOrder(stateDir)
  return came
}

/** Keeps the flags for the next start. */
export const pauseSandbox = (stateDir: string, say: (line: string) => void): Promise<Stopped> =>
  endSandbox(stateDir, 'pause', say)

async function endSandbox(stateDir: string, want: StopKind, say: (line: string) => void): Promise<Stopped> {
  const before = await presenceOf(stateDir)
  if (before.is === 'absent') return 'absent'
  const { log } = statePaths(stateDir)
  const said = sizeOf(log)
  const refused = await requestStop(stateDir, want).catch(() => undefined)
  if (refused !== undefined && (await isGone(stateDir, REQUEST_MS))) {
    const lines = linesSince(log, said)
    // The log may be full.
    for (const line of lines.length > 0 ? lines : refused) say(line)
    return 'stopped'
  }
  for (const line of refused ?? []) say(line)
  for (const [signal, timeoutMs] of [
    ['SIGTERM', SIGTERM_MS],
    ['SIGKILL', SIGKILL_MS],
  ] as const) {
    const now = await presenceOf(stateDir)
    if (now.is === 'present') signalSupervisor(now.owner, signal)
    if (await isGone(stateDir, timeoutMs)) return 'stopped'
  }
  throw doesNotEnd(stateDir, await presenceOf(stateDir))
}

const sizeOf = (file: string): number => lstatSync(file, { throwIfNoEntry: false })?.size ?? 0

/** What the supervisor said at its end: refusals, commits that wait, files that the host runs later. */
function linesSince(log: string, from: number): readonly string[] {
  if (sizeOf(log) <= from) return []
  const text = readFileSync(log).subarray(from).toString()
  return text.split('\n').filter(line => line !== '')
}

async function isGone(stateDir: string, timeoutMs: number): Promise<boolean> {
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await Bun.sleep(POLL_MS))
    if ((await presenceOf(stateDir)).is === 'absent') return true
  return false
}

const doesNotEnd = (stateDir: string, presence: Presence): PenError =>
  new PenError('STATE', {
    what: 'the supervisor of this sandbox does not end',
    at: statePaths(stateDir).lock,
    hint:
      presence.is === 'present' && presence.owner !== undefined
        ? `check process ${presence.owner.pid}: it did not end after SIGKILL`
        : 'it may run on another machine with the same home directory',
  })
