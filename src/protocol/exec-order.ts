/** Orders as text. Each reader checks every value again, and trusts no writer. */
import { between, type Check, fromText, list, object, optional, pair, toText, truth, word } from './fields.ts'
import { protocolError } from './frame.ts'

export interface Variable {
  readonly name: string
  readonly value: string
}

/** A command for a running sandbox. */
export interface ExecOrder {
  /** When empty, the shell inside starts: bash, or else sh. `SHELL_INSIDE` as the first word stands for it. */
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
  /** Only in a virtual machine: commands are root of its kernel, as the exec daemon is. It drops nothing. */
  readonly root?: boolean
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
  /** Every mount becomes noexec, except those of `programs`. `places` are mounts that may not be there yet. */
  readonly noexec?: { readonly places: readonly string[]; readonly programs: readonly string[] } | undefined
  /** The process limit of commands, when the exec daemon enforces it. Undefined when the host does. */
  readonly processes?: number | undefined
}

const MAX_ID = 0xffff_fffe

const words = <T>(one: Check<T>): Check<readonly T[]> => list(one, 131_072)

const path: Check<string> = value => {
  const found = word(value)
  if (!found.startsWith('/') || found.length > 4096) throw protocolError('an invalid path')
  return found
}

const variable: Check<Variable> = item => {
  const [name, value] = pair(word, word)(item)
  if (name === '' || name.includes('=')) throw protocolError('a variable without a name')
  return { name, value }
}

const size = (value: unknown) => {
  const [columns, rows] = pair(between(0, 0xffff), between(0, 0xffff))(value)
  return { columns, rows }
}

/** Never root, whatever an image says. Only `root` makes commands root. */
const user = (value: unknown) => {
  const [uid, gid] = pair(between(1, MAX_ID), between(0, MAX_ID))(value)
  return { uid, gid }
}

/** At most 4096 instructions of 8 bytes, which is the kernel's limit. */
const program: Check<Uint8Array> = value => {
  const bytes = Buffer.from(word(value), 'base64')
  const isWhole = bytes.length > 0 && bytes.length % 8 === 0 && bytes.length <= 32_768
  if (!isWhole || bytes.toString('base64') !== value) throw protocolError('an invalid filter')
  return bytes
}

const order: Check<ExecOrder> = object({
  argv: words(word),
  cwd: path,
  env: words(variable),
  terminal: optional(size),
  joined: truth,
})

const setup: Check<DaemonSetup> = object({
  root: truth,
  user: optional(user),
  userDirectories: words(path),
  env: words(variable),
  seccomp: optional(program),
  emptyBounding: truth,
  executable: optional(words(path)),
  noexec: optional(object({ places: words(path), programs: words(path) })),
  processes: optional(between(1, MAX_ID)),
})

const asPairs = (env: readonly Variable[]) => env.map(({ name, value }) => [name, value])

export const readOrder = (bytes: Uint8Array): ExecOrder => fromText(bytes, order)

export const writeOrder = ({ argv, cwd, env, terminal, joined = false }: ExecOrder): Uint8Array =>
  toText({
    argv,
    cwd,
    env: asPairs(env),
    terminal: terminal === undefined ? null : [terminal.columns, terminal.rows],
    joined,
  })

export const readSetup = (bytes: Uint8Array): DaemonSetup => fromText(bytes, setup)

export const writeSetup = (setup: DaemonSetup): Uint8Array =>
  toText({
    root: setup.root ?? false,
    user: setup.user === undefined ? null : [setup.user.uid, setup.user.gid],
    userDirectories: setup.userDirectories,
    env: asPairs(setup.env),
    seccomp: setup.seccomp === undefined ? null : Buffer.from(setup.seccomp).toString('base64'),
    emptyBounding: setup.emptyBounding,
    executable: setup.executable ?? null,
    noexec: setup.noexec ?? null,
    processes: setup.processes ?? null,
  })
