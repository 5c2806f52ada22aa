/** Orders as text. Each reader checks every value again, and trusts no writer. */
import { protocolError } from './frame.ts'

export interface Variable {
  readonly name: string
  readonly value: string
}

/** A command for a running sandbox. */
export interface ExecOrder {
  /** When empty, the shell inside starts: bash, or else sh. */
  readonly argv: readonly string[]
  readonly cwd: string
  /** Added to the sandbox's own variables. */
  readonly env: readonly Variable[]
  readonly terminal: { readonly columns: number; readonly rows: number } | undefined
  /** Sends stderr as stdout, so that the order of writes to both is kept. A terminal always does this. */
  readonly joined?: boolean
}

/** Sent once, before the exec daemon starts a command. */
export interface DaemonSetup {
  /** The user of commands. Undefined when the exec daemon's own user is the only one. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined
  /** Directories that the user gets, innermost first. */
  readonly userDirectories: readonly string[]
  /** The sandbox's own variables, for every command. */
  readonly env: readonly Variable[]
  /** A seccomp filter for the exec daemon and its descendants. */
  readonly seccomp: Uint8Array | undefined
  /** True when no executed program may gain a capability. */
  readonly emptyBounding: boolean
  /**
   * What the exec daemon and its descendants may execute: files and whole directories. Undefined when everything may.
   */
  readonly executable?: readonly string[] | undefined
  /** The process limit of commands, when the exec daemon enforces it. Undefined when the host does. */
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
    userDirectories: setup.userDirectories,
    env: setup.env.map(({ name, value }) => [name, value]),
    seccomp: setup.seccomp === undefined ? null : Buffer.from(setup.seccomp).toString('base64'),
    emptyBounding: setup.emptyBounding,
    executable: setup.executable ?? null,
    processes: setup.processes ?? null,
  })

export function readSetup(bytes: Uint8Array): DaemonSetup {
  const setup = record(bytes, [
    'user',
    'userDirectories',
    'env',
    'seccomp',
    'emptyBounding',
    'executable',
    'processes',
  ])
  if (typeof setup['emptyBounding'] !== 'boolean') throw protocolError('a setup without emptyBounding')
  return {
    user: setup['user'] === null ? undefined : user(setup['user']),
    userDirectories: list(setup['userDirectories'], path),
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
    throw protocolError('a text of another type')
  const found = Object.keys(value)
  if (found.length !== keys.length || !keys.every(key => Object.hasOwn(value, key)))
    throw protocolError('a text with other keys')
  return value as Record<string, unknown>
}

function list<T>(value: unknown, one: (item: unknown) => T): T[] {
  if (!Array.isArray(value) || value.length > MAX_WORDS)
    throw protocolError('a list that is invalid or too long')
  return value.map(one)
}

/** A NUL would end the word. */
function text(value: unknown): string {
  if (typeof value !== 'string' || value.includes('\0')) throw protocolError('an invalid word')
  return value
}

function path(value: unknown): string {
  const word = text(value)
  if (!word.startsWith('/') || word.length > 4096) throw protocolError('an invalid path')
  return word
}

function variable(value: unknown): Variable {
  const [name, content] = pair(value)
  if (typeof name !== 'string' || !NAME.test(name)) throw protocolError('a variable without a name')
  return { name, value: text(content) }
}

/** Never root: the exec daemon starts every command as an ordinary user, whatever an image or a policy says. */
function user(value: unknown): { uid: number; gid: number } {
  const [uid, gid] = pair(value)
  return { uid: whole(uid, 1, MAX_ID), gid: whole(gid, 0, MAX_ID) }
}

function size(value: unknown): { columns: number; rows: number } {
  const [columns, rows] = pair(value)
  return { columns: whole(columns, 0, 0xffff), rows: whole(rows, 0, 0xffff) }
}

function pair(value: unknown): readonly [unknown, unknown] {
  if (!Array.isArray(value) || value.length !== 2) throw protocolError('an invalid pair')
  return [value[0], value[1]]
}

function whole(value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
    throw protocolError('a number out of bounds')
  return value
}

/** At most 4096 instructions of 8 bytes, which is the kernel's limit. */
function program(value: unknown): Uint8Array {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'base64') : Buffer.alloc(0)
  if (
    bytes.toString('base64') !== value ||
    bytes.length % 8 !== 0 ||
    bytes.length === 0 ||
    bytes.length > 32_768
  )
    throw protocolError('an invalid filter')
  return bytes
}
