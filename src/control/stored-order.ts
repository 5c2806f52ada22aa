/**
 * The order that a sandbox was started with, on disk from `pen start` until `pen stop`. It is in the user's state directory, which
 * no sandbox can see. The file outlives every other end of the sandbox, so the next start is never weaker.
 */
import { rmSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { isAlive, type ProcessIdentity } from '../base/kernel/processes.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { STARTED } from '../config/project.ts'
import { requestOrder } from './client.ts'
import { presenceOf } from './state.ts'
import { asSupervisorOrder, hasNoFlags, type SupervisorOrder } from './supervisor-order.ts'

interface StoredOrder {
  readonly order: SupervisorOrder
  /** The backend that the start chose. */
  readonly backend: string
  /** The program that owns the sandbox: the order is void when that program has ended. Null for a sandbox of the user. */
  readonly owner: ProcessIdentity | null
}

const MAX_BYTES = 1024 * 1024

const fileIn = (stateDir: string): string => `${stateDir}/${STARTED}`

/** Undefined when no start is in force. Throws when the file is unreadable: a start without these flags could be weaker. */
export function readStoredOrder(stateDir: string): StoredOrder | undefined {
  const path = fileIn(stateDir)
  let stored: StoredOrder | undefined
  try {
    const bytes = readRegularFile(path, { maxBytes: MAX_BYTES, owner: 'self-or-root' })
    if (bytes === undefined) return undefined
    stored = asStoredOrder(JSON.parse(bytes.toString()))
  } catch {
    // Throws below.
  }
  if (stored === undefined)
    throw new PenError('STATE', {
      what: 'cannot read the flags of the last start; a start without them could be weaker',
      at: path,
      hint: 'pen stop drops them; then run pen start with the flags that you want',
    })
  return stored.owner === null || isAlive(stored.owner) ? stored : undefined
}

function asStoredOrder(value: unknown): StoredOrder | undefined {
  const { version, backend, owner, order: given } = (value ?? {}) as Record<string, unknown>
  const order = asSupervisorOrder(given)
  if (version !== 1 || order === undefined || typeof backend !== 'string') return undefined
  if (owner === null) return { order, backend, owner }
  const { pid, startTime } = (owner ?? {}) as Record<string, unknown>
  if (typeof pid !== 'number' || typeof startTime !== 'string') return undefined
  return { order, backend, owner: { pid, startTime } }
}

/** Returns a function that restores the previous order. */
export function storeOrder(stateDir: string, stored: StoredOrder): () => void {
  const path = fileIn(stateDir)
  const before = readRegularFile(path, { maxBytes: MAX_BYTES })
  const text = `${JSON.stringify({ version: 1, ...stored })}\n`
  if (before?.toString() === text) return () => undefined
  writeFileAtomically(path, text)
  return () => (before === undefined ? dropOrder(stateDir) : void writeFileAtomically(path, before))
}

/** Whatever is there: `pen stop` is the fix for a file that cannot be read. */
export const dropOrder = (stateDir: string): void =>
  rmSync(fileIn(stateDir), { force: true, recursive: true })

/** The order for `pen restart`. Throws when a sandbox runs and its flags are unknown: a start without them could be weaker. */
export async function orderForRestart(stateDir: string): Promise<SupervisorOrder | undefined> {
  const stored = readStoredOrder(stateDir)?.order
  // An older pen stored no file, so ask its supervisor.
  const order = (await requestOrder(stateDir)) ?? stored
  if (order !== undefined || (await presenceOf(stateDir)).is === 'absent') return order
  throw new PenError('STATE', {
    what: 'the flags of the running sandbox are unknown; a start without them could be weaker',
    at: stateDir,
    hint: 'pen stop; then run pen start with the flags that you want',
  })
}

/** The order of the sandbox that an agent joins. A sandbox that does not run and has no flags is not joined. */
export async function orderToJoin(stateDir: string): Promise<SupervisorOrder | undefined> {
  const running = await requestOrder(stateDir)
  if (running !== undefined) return running
  const stored = readStoredOrder(stateDir)?.order
  return stored === undefined || hasNoFlags(stored) ? undefined : stored
}
