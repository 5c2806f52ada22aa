/**
 * The order that a sandbox was started with, on disk from `pen start` until `pen stop`. The user's own state directory holds it, which
 * no sandbox can see. Whatever else ends the sandbox leaves this file, so the next start is never weaker.
 */
import { rmSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { STARTED } from '../config/project.ts'
import { isAlive, type Owner } from '../limits/cgroup-name.ts'
import { asSupervisorOrder, type SupervisorOrder } from './supervisor-order.ts'

export interface StoredOrder {
  readonly order: SupervisorOrder
  /** The backend that was chosen. */
  readonly backend: string
  /** The program whose sandbox it is: the order ends with that program. Null for a sandbox of the user's. */
  readonly owner: Owner | null
}

const MAX_BYTES = 1024 * 1024

const fileIn = (stateDir: string): string => `${stateDir}/${STARTED}`

/** Undefined where no start holds any more. Throws for a file that cannot be read: without it a start could be weaker. */
export function readStoredOrder(stateDir: string): StoredOrder | undefined {
  const bytes = readRegularFile(fileIn(stateDir), { maxBytes: MAX_BYTES, owner: 'self-or-root' })
  if (bytes === undefined) return undefined
  const stored = parse(bytes.toString())
  if (stored === undefined) throw unreadable(fileIn(stateDir))
  return stored.owner === null || isAlive(stored.owner) ? stored : undefined
}

/** Returns what puts the former order back. */
export function storeOrder(stateDir: string, stored: StoredOrder): () => void {
  const path = fileIn(stateDir)
  const before = readRegularFile(path, { maxBytes: MAX_BYTES })
  const text = `${JSON.stringify({ version: 1, ...stored })}\n`
  if (before?.toString() === text) return () => undefined
  writeFileAtomically(path, text)
  return () => (before === undefined ? dropOrder(stateDir) : void writeFileAtomically(path, before))
}

export const dropOrder = (stateDir: string): void => rmSync(fileIn(stateDir), { force: true })

function parse(text: string): StoredOrder | undefined {
  try {
    const value = JSON.parse(text) as Record<string, unknown> | null
    const { version, backend, owner } = value ?? {}
    const order = asSupervisorOrder(value?.['order'])
    if (version !== 1 || order === undefined || typeof backend !== 'string') return undefined
    if (owner === null) return { order, backend, owner }
    const { pid, startTime } = (owner ?? {}) as Record<string, unknown>
    if (typeof pid !== 'number' || typeof startTime !== 'string') return undefined
    return { order, backend, owner: { pid, startTime } }
  } catch {
    return undefined
  }
}

const unreadable = (at: string): PenError =>
  new PenError('STATE', {
    what: 'the flags that this sandbox was started with cannot be read, and without them it could be weaker',
    at,
    hint: 'pen stop drops them; then pen start with the flags that you want',
  })
