/** What `pen start` and the supervisor that it leaves tell each other: an order down, lines of a report up. Both are this user's pen. */
import { readFileSync, writeSync } from 'node:fs'
import { PenError } from '../base/error.ts'
import type { Owner } from '../limits/cgroup-name.ts'
import { readError, type ToldError } from './messages.ts'

/** The word after `pen`. By itself it can do nothing: the descriptors must be there too. */
export const SUPERVISE_MODE = '__supervisor'

export const ORDER_FD = 0
export const REPORT_FD = 3

export interface SupervisorOrder {
  /** Whose sandbox: the supervisor looks again, and stops if it finds another. */
  readonly id: string
  /** What the command line says, in the shape of a config document. */
  readonly flags: object
  readonly offline: boolean
  readonly allowUserExpansion: boolean
  /** The coding agent whose preset it has. */
  readonly agent?: string
}

/** Whether it asks for nothing of its own. */
export const isPlain = ({ flags, offline, allowUserExpansion, agent }: SupervisorOrder): boolean =>
  Object.keys(flags).length === 0 && !offline && !allowUserExpansion && agent === undefined

/** What was asked for first still holds; a value that is given again is replaced, and a list grows. */
export function onTop(before: SupervisorOrder, added: SupervisorOrder): SupervisorOrder {
  const agent = added.agent ?? before.agent
  return {
    id: added.id,
    flags: merged(before.flags, added.flags) as object,
    offline: before.offline || added.offline,
    allowUserExpansion: before.allowUserExpansion || added.allowUserExpansion,
    ...(agent !== undefined && { agent }),
  }
}

function merged(before: unknown, added: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(added)) return [...new Set([...before, ...added])]
  if (!isRecord(before) || !isRecord(added)) return added
  const entries = Object.entries(added).map(([key, value]) => [
    key,
    Object.hasOwn(before, key) ? merged(before[key], value) : value,
  ])
  return { ...before, ...Object.fromEntries(entries) }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** As a supervisor gets it, which was started before anybody looked where. It looks again, but not before it has asked an engine. */
export interface PlacedOrder {
  readonly order: SupervisorOrder
  readonly workspace: string
  readonly stateDir: string
  readonly cacheDir: string
  /** The backend that the sandbox had before. */
  readonly backend: string | null
  /** The program whose sandbox it will be. */
  readonly owner: Owner | null
}

export type StartReport = { readonly say: string } | { readonly ready: true } | { readonly failed: ToldError }

const MAX_LINE = 65_536

/** Undefined for a spare one that nobody needs. */
export function readSupervisorOrder(): PlacedOrder | undefined {
  const text = readOrder()
  if (text === '') return undefined
  const told = (parse(text) ?? {}) as Record<string, unknown>
  const order = asSupervisorOrder(told['order'])
  const isWhole =
    ['workspace', 'stateDir', 'cacheDir'].every(key => typeof told[key] === 'string') &&
    ['backend', 'owner'].every(key => told[key] !== undefined)
  if (order !== undefined && isWhole) return { ...(told as unknown as PlacedOrder), order }
  throw new PenError('USAGE', { what: `${SUPERVISE_MODE} is not a verb: pen start starts it by itself` })
}

function readOrder(): string | undefined {
  try {
    return readFileSync(ORDER_FD, 'utf8')
  } catch {
    return undefined
  }
}

function parse(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

export function asSupervisorOrder(value: unknown): SupervisorOrder | undefined {
  const { id, flags, offline, allowUserExpansion, agent } = (value ?? {}) as Record<string, unknown>
  const isWhole =
    typeof id === 'string' &&
    typeof flags === 'object' &&
    flags !== null &&
    typeof offline === 'boolean' &&
    typeof allowUserExpansion === 'boolean'
  if (!isWhole) return undefined
  const order = { id, flags, offline, allowUserExpansion }
  if (agent === undefined) return order
  return typeof agent === 'string' ? { ...order, agent } : undefined
}

/** Throws EPIPE when the starter is gone. */
export function report(line: StartReport): void {
  const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
  for (let done = 0; done < bytes.length; ) done += writeSync(REPORT_FD, bytes, done)
}

/** Cuts what comes into lines; the last one counts only when it is whole. */
export class ReportLines {
  #text = ''
  readonly #decoder = new TextDecoder()

  push(bytes: Uint8Array): StartReport[] {
    const lines = `${this.#text}${this.#decoder.decode(bytes, { stream: true })}`.split('\n')
    this.#text = lines.pop() ?? ''
    if (this.#text.length > MAX_LINE) throw odd()
    return lines.map(readReport)
  }
}

function readReport(line: string): StartReport {
  try {
    const value = JSON.parse(line) as Record<string, unknown>
    if (typeof value['say'] === 'string') return { say: value['say'] }
    if (value['ready'] === true) return { ready: true }
    if (value['failed'] !== undefined) return { failed: readError(value['failed']) }
  } catch {
    // Told below.
  }
  throw odd()
}

const odd = (): PenError =>
  new PenError('INTERNAL', { what: 'the supervisor said something that pen does not know' })
