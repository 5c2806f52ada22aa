/** The order that a sandbox follows: of the one that runs, or of the one that nobody has stopped. */
import { PenError } from '../base/error.ts'
import { askForOrder } from './client.ts'
import { presenceOf } from './state.ts'
import { readStoredOrder } from './stored-order.ts'
import { isPlain, type SupervisorOrder } from './supervisor-order.ts'

/** Throws for one that runs, and whose flags nobody can tell: a start without them could be weaker. */
export async function runningOrder(stateDir: string): Promise<SupervisorOrder | undefined> {
  const stored = readStoredOrder(stateDir)?.order
  // A supervisor of an older pen has left no file.
  const order = (await askForOrder(stateDir)) ?? stored
  if (order !== undefined || (await presenceOf(stateDir)).is === 'absent') return order
  throw new PenError('STATE', {
    what: 'the flags of the sandbox that runs are not known, and without them it could be weaker',
    at: stateDir,
    hint: 'pen stop; then pen start with the flags that you want',
  })
}

/** For a command that would else have a sandbox of its own; one without flags is no reason to have none. */
export async function heldOrder(stateDir: string): Promise<SupervisorOrder | undefined> {
  const running = await askForOrder(stateDir)
  if (running !== undefined) return running
  const stored = readStoredOrder(stateDir)?.order
  return stored === undefined || isPlain(stored) ? undefined : stored
}
