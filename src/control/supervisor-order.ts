/** What `pen start` sends to the supervisor that it starts, and the report lines that come back. Both processes are this user's pen. */
import { readFileSync } from 'node:fs'
import { PenError } from '../base/error.ts'
import type { ProcessIdentity } from '../base/kernel/processes.ts'
import { shellWord } from '../base/printable.ts'
import { writeAll } from '../base/write-all.ts'
import { readError, type SerializedError } from './messages.ts'

/** The hidden mode of the binary. It does nothing without the two descriptors below. */
export const SUPERVISE_MODE = '__supervisor'

const ORDER_FD = 0
const REPORT_FD = 3

export interface SupervisorOrder {
  /** The sandbox. The supervisor computes it again, and stops if it differs. */
  readonly id: string
  /** The flags of the command line, as a config document. */
  readonly flags: object
  readonly offline: boolean
  readonly allowUserExpansion: boolean
  /** The coding agent whose preset applies. */
  readonly agent?: string
}

export const hasNoFlags = ({ flags, offline, allowUserExpansion, agent }: SupervisorOrder): boolean =>
  Object.keys(flags).length === 0 && !offline && !allowUserExpansion && agent === undefined

/**
 * Adds flags to an earlier order: lists grow, single values are replaced, nothing is removed. Throws when the earlier `--offline`
 * would make new flags void.
 */
export function mergeOrders(before: SupervisorOrder, added: SupervisorOrder): SupervisorOrder {
  if (before.offline && !added.offline) refuseGrants(added)
  const agent = added.agent ?? before.agent
  return {
    id: added.id,
    flags: merged(before.flags, added.flags) as object,
    offline: before.offline || added.offline,
    allowUserExpansion: before.allowUserExpansion || added.allowUserExpansion,
    ...(agent !== undefined && { agent }),
  }
}

function refuseGrants({ id, flags }: SupervisorOrder): void {
  const { network = {} } = flags as { readonly network?: object }
  const granted = describeOrder({ id, flags: { network }, offline: false, allowUserExpansion: false })
  if (granted === '') return
  throw new PenError('STATE', {
    what: `the sandbox was started with --offline, which holds until pen stop: ${granted} has no effect`,
    hint: `pen stop; then pen start ${granted}`,
  })
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

/** The flag for each list of strings in a config document. */
const LIST_FLAGS: readonly (readonly [section: string, key: string, flag: string])[] = [
  ['files', 'read', '--read'],
  ['files', 'write', '--write'],
  ['files', 'deny', '--deny'],
  ['network', 'http', '--allow'],
  ['network', 'tcp', '--allow'],
  ['network', 'groups', '--group'],
]
const SINGLE_FLAGS = ['profile', 'isolation', 'backend'] as const
const KEYS_WITH_FLAGS = [...SINGLE_FLAGS, 'files', 'network', 'limits', 'env', 'acceptGaps']

/** An order as command-line flags, for a person. Values of variables are left out: they may be secrets. */
export function describeOrder({ flags, offline, allowUserExpansion, agent }: SupervisorOrder): string {
  const document = flags as Readonly<Record<string, unknown>>
  const words = [
    ...(offline ? ['--offline'] : []),
    ...SINGLE_FLAGS.flatMap(key => withValue(`--${key}`, document[key])),
    ...LIST_FLAGS.flatMap(([section, key, flag]) =>
      textsIn(record(document[section])[key]).flatMap(text => withValue(flag, text)),
    ),
    ...(record(document['network'])['ask'] === 'hold' ? ['--ask'] : []),
    ...Object.entries(record(document['limits'])).map(([key, value]) => `--limit ${key}=${String(value)}`),
    ...Object.keys(record(document['env'])).flatMap(name => withValue('--env', name)),
    ...textsIn(document['acceptGaps']).flatMap(name => withValue('--accept-gap', name)),
    ...(allowUserExpansion ? ['--allow-user-expansion'] : []),
    ...withValue('--agent', agent),
    // A program's policy may have keys that no flag sets.
    ...Object.keys(document)
      .filter(key => !KEYS_WITH_FLAGS.includes(key))
      .map(key => `(policy: ${key})`),
  ]
  return words.join(' ')
}

const record = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {})

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(one => typeof one === 'string') : []

const withValue = (flag: string, value: unknown): readonly string[] =>
  typeof value === 'string' ? [`${flag} ${shellWord(value) ?? '…'}`] : []

/** What a spare supervisor reads from stdin. It verifies the paths itself, but asks the engine for a container first. */
export interface SupervisorInput {
  readonly order: SupervisorOrder
  readonly workspace: string
  /** The sandbox's name. */
  readonly name: string | null
  readonly stateDir: string
  /** `Project.shared.stateDir`: where the live config is. */
  readonly sharedDir: string
  readonly cacheDir: string
  /** The backend of the previous start. */
  readonly backend: string | null
  /** The program that will own the sandbox. */
  readonly owner: ProcessIdentity | null
  /** Whether `pen start` prints its phases. */
  readonly debug: boolean
}

export type StartReport =
  | { readonly say: string }
  | { readonly ready: true }
  | { readonly failed: SerializedError }

const MAX_LINE = 65_536

/** Undefined when the input ends empty: this spare supervisor is not needed. */
export function readSupervisorInput(): SupervisorInput | undefined {
  let input: Record<string, unknown> = {}
  try {
    const text = readFileSync(ORDER_FD, 'utf8')
    if (text === '') return undefined
    input = JSON.parse(text) as Record<string, unknown>
  } catch {
    // Throws below.
  }
  const order = asSupervisorOrder(input['order'])
  const isComplete =
    ['workspace', 'stateDir', 'sharedDir', 'cacheDir'].every(key => typeof input[key] === 'string') &&
    ['name', 'backend', 'owner'].every(key => input[key] !== undefined)
  if (order !== undefined && isComplete) return { ...(input as unknown as SupervisorInput), order }
  throw new PenError('USAGE', { what: `${SUPERVISE_MODE} is not a verb: pen start runs it` })
}

export function asSupervisorOrder(value: unknown): SupervisorOrder | undefined {
  const { id, flags, offline, allowUserExpansion, agent } = (value ?? {}) as Record<string, unknown>
  const isComplete =
    typeof id === 'string' &&
    typeof flags === 'object' &&
    flags !== null &&
    typeof offline === 'boolean' &&
    typeof allowUserExpansion === 'boolean'
  if (!isComplete) return undefined
  const order = { id, flags, offline, allowUserExpansion }
  if (agent === undefined) return order
  return typeof agent === 'string' ? { ...order, agent } : undefined
}

/** Throws EPIPE when `pen start` has ended. */
export const report = (line: StartReport): void => writeJson(REPORT_FD, line)

/** Writes one line to another process. */
export const writeJson = (fd: number, value: object): void => writeAll(fd, `${JSON.stringify(value)}\n`)

/** Splits a stream into complete lines. */
export class ReportLines {
  #text = ''
  readonly #decoder = new TextDecoder()

  push(bytes: Uint8Array): StartReport[] {
    const lines = `${this.#text}${this.#decoder.decode(bytes, { stream: true })}`.split('\n')
    this.#text = lines.pop() ?? ''
    if (this.#text.length > MAX_LINE) throw unknownReport()
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
    // Throws below.
  }
  throw unknownReport()
}

const unknownReport = (): PenError =>
  new PenError('INTERNAL', { what: 'the supervisor sent an unknown report' })
