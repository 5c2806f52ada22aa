/** What is to be done inside, as text. Each reader checks every value again: neither end takes the other's word for it. */
import { protocolError } from './frame.ts'

export interface Variable {
  readonly name: string
  readonly value: string
}

/** A command for a sandbox that runs already. */
export interface ExecOrder {
  /** Empty: the shell inside, bash where there is one. */
  readonly argv: readonly string[]
  readonly cwd: string
  /** On top of the sandbox's own. */
  readonly env: readonly Variable[]
  readonly terminal: { readonly columns: number; readonly rows: number } | undefined
  /** stdout and stderr are one, told as stdout: what is written to both keeps its order. A terminal is one in any case. */
  readonly joined?: boolean
}

/** Told once, before the exec daemon starts anything. */
export interface DaemonSetup {
  /** Who commands run as; undefined where there is only one user, the exec daemon's own. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined
  /** Directories that become that user's, the innermost first. */
  readonly given: readonly string[]
  /** The sandbox's own variables, for every command. */
  readonly env: readonly Variable[]
  /** A filter of system calls for the exec daemon and all that it starts. */
  readonly seccomp: Uint8Array | undefined
  /** Whether no capability may ever be gained again, by whatever is executed. */
  readonly emptyBounding: boolean
  /** All that the exec daemon and what it starts may execute, directories with all beneath; undefined where that is anything. */
  readonly executable?: readonly string[] | undefined
  /** How many processes commands may have, where the exec daemon is to bound them; undefined where the host does. */
  readonly processes?: number | undefined
}

const MAX_WORDS = 131_072
const MAX_ID = 0xffff_fffe
const NAME = /^[^=\0]+$/

export const writeOrder = (order: ExecOrder): Uint8Array =>
  toBytes({
    argv: order.argv,
    cwd: order.cwd,
    env: order.env.map(({ name, value }) => [name, value]),
    terminal: order.terminal === undefined ? null : [order.terminal.columns, order.terminal.rows],
    joined: order.joined ?? false,
  })

export function readOrder(bytes: Uint8Array): ExecOrder {
  const { argv, cwd, env, terminal, joined } = record(bytes, ['argv', 'cwd', 'env', 'terminal', 'joined'])
  if (typeof joined !== 'boolean') throw protocolError('an order without joined')
  return {
    argv: list(argv, text),
    cwd: path(cwd),
    env: list(env, variable),
    terminal: terminal === null ? undefined : size(terminal),
    joined,
  }
}

export const writeSetup = (setup: DaemonSetup): Uint8Array =>
  toBytes({
    user: setup.user === undefined ? null : [setup.user.uid, setup.user.gid],
    given: setup.given,
    env: setup.env.map(({ name, value }) => [name, value]),
    seccomp: setup.seccomp === undefined ? null : Buffer.from(setup.seccomp).toString('base64'),
    emptyBounding: setup.emptyBounding,
    executable: setup.executable ?? null,
    processes: setup.processes ?? null,
  })

export function readSetup(bytes: Uint8Array): DaemonSetup {
  const setup = record(bytes, ['user', 'given', 'env', 'seccomp', 'emptyBounding', 'executable', 'processes'])
  if (typeof setup['emptyBounding'] !== 'boolean') throw protocolError('a setup without emptyBounding')
  return {
    user: setup['user'] === null ? undefined : user(setup['user']),
    given: list(setup['given'], path),
    env: list(setup['env'], variable),
    seccomp: setup['seccomp'] === null ? undefined : program(setup['seccomp']),
    emptyBounding: setup['emptyBounding'],
    executable: setup['executable'] === null ? undefined : list(setup['executable'], path),
    processes: setup['processes'] === null ? undefined : whole(setup['processes'], 1, MAX_ID),
  }
}

const toBytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

function record(bytes: Uint8Array, keys: readonly string[]): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    throw protocolError('a text that is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw protocolError('a text of no kind')
  const found = Object.keys(value)
  if (found.length !== keys.length || !keys.every(key => Object.hasOwn(value, key)))
    throw protocolError('a text with other keys')
  return value as Record<string, unknown>
}

function list<T>(value: unknown, one: (item: unknown) => T): T[] {
  if (!Array.isArray(value) || value.length > MAX_WORDS)
    throw protocolError('a list that is none, or too long')
  return value.map(one)
}

/** What the kernel takes as one word: it would end at the first NUL. */
function text(value: unknown): string {
  if (typeof value !== 'string' || value.includes('\0')) throw protocolError('a word that is none')
  return value
}

function path(value: unknown): string {
  const word = text(value)
  if (!word.startsWith('/') || word.length > 4096) throw protocolError('a path that is none')
  return word
}

function variable(value: unknown): Variable {
  const [name, content] = pair(value)
  if (typeof name !== 'string' || !NAME.test(name)) throw protocolError('a variable without a name')
  return { name, value: text(content) }
}

/** Never root: whatever an image or a policy says, what the exec daemon starts is an ordinary user. */
function user(value: unknown): { uid: number; gid: number } {
  const [uid, gid] = pair(value)
  return { uid: whole(uid, 1, MAX_ID), gid: whole(gid, 0, MAX_ID) }
}

function size(value: unknown): { columns: number; rows: number } {
  const [columns, rows] = pair(value)
  return { columns: whole(columns, 0, 0xffff), rows: whole(rows, 0, 0xffff) }
}

function pair(value: unknown): readonly [unknown, unknown] {
  if (!Array.isArray(value) || value.length !== 2) throw protocolError('a pair that is none')
  return [value[0], value[1]]
}

function whole(value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
    throw protocolError('a number out of bounds')
  return value
}

/** At most 4096 instructions of 8 bytes, as the kernel has it. */
function program(value: unknown): Uint8Array {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'base64') : Buffer.alloc(0)
  if (
    bytes.toString('base64') !== value ||
    bytes.length % 8 !== 0 ||
    bytes.length === 0 ||
    bytes.length > 32_768
  )
    throw protocolError('a filter that is none')
  return bytes
}
