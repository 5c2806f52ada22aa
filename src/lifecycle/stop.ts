/** Ends a sandbox that stays: asked first, then, whatever its supervisor does, ended. */
import { PenError } from '../base/error.ts'
import { askToStop, type StopKind } from '../control/client.ts'
import { type Presence, presenceOf, signalSupervisor, statePaths } from '../control/state.ts'
import { dropOrder } from '../control/stored-order.ts'

/** The supervisor's own grace, and what a container takes to be gone. */
const ASKED_MS = 10_000
/** For a supervisor that does not answer. */
const TOLD_MS = 3000
const KILLED_MS = 5000
const LOOK_MS = 10

export type Stopped = 'stopped' | 'absent'

/** For whoever holds the lock of changes. When it returns, every process of the sandbox is gone; what it refused was said. */
export async function stopSandbox(
  stateDir: string,
  say: (line: string) => void = () => undefined,
): Promise<Stopped> {
  const came = await endSandbox(stateDir, 'stop', say)
  // Its supervisor may have been killed, now or long ago.
  dropOrder(stateDir)
  return came
}

/** The flags hold, for whoever starts it again. */
export const pauseSandbox = (stateDir: string, say: (line: string) => void): Promise<Stopped> =>
  endSandbox(stateDir, 'pause', say)

async function endSandbox(stateDir: string, want: StopKind, say: (line: string) => void): Promise<Stopped> {
  const before = await presenceOf(stateDir)
  if (before.is === 'absent') return 'absent'
  const refused = await askToStop(stateDir, want).catch(() => undefined)
  for (const line of refused ?? []) say(line)
  if (refused !== undefined && (await isGone(stateDir, ASKED_MS))) return 'stopped'
  for (const [signal, patience] of [
    ['SIGTERM', TOLD_MS],
    ['SIGKILL', KILLED_MS],
  ] as const) {
    const now = await presenceOf(stateDir)
    if (now.is === 'present') signalSupervisor(now.owner, signal)
    if (await isGone(stateDir, patience)) return 'stopped'
  }
  throw stays(stateDir, await presenceOf(stateDir))
}

async function isGone(stateDir: string, patienceMs: number): Promise<boolean> {
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await Bun.sleep(LOOK_MS))
    if ((await presenceOf(stateDir)).is === 'absent') return true
  return false
}

const stays = (stateDir: string, presence: Presence): PenError =>
  new PenError('STATE', {
    what: 'the supervisor of this sandbox does not end',
    at: statePaths(stateDir).lock,
    hint:
      presence.is === 'present' && presence.owner !== undefined
        ? `look at process ${presence.owner.pid}`
        : 'it may run on another machine that has the same home directory',
  })
