/** The options and the result of a command. */
import { resolve } from 'node:path/posix'
import type { ExecOrder } from '../protocol/exec-order.ts'
import { checkValue, type Shape, usage } from './check-options.ts'
import type { Denial, LimitHit } from './denial.ts'

/** An argument vector, or a string for `/bin/sh` in the sandbox. */
export type CommandLine = string | readonly string[]

export interface SpawnOptions {
  /**
   * In milliseconds. A value above `exec.ceiling` of the policy is an error. The default of `exec()` is `exec.timeout` of the policy
   * (120 s). `spawn()` has no default: its command runs until it ends, is killed, or the sandbox ends.
   */
  readonly timeout?: number | undefined
  /** Added to the sandbox's variables. This program's own environment is not passed on. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** A directory in the sandbox, relative to the project. */
  readonly cwd?: string | undefined
  /** Kills the command and every process that it started. */
  readonly signal?: AbortSignal | undefined
  /** How many bytes of each stream the result contains, from its beginning and its end. Default: `exec.maxOutput`. */
  readonly maxOutput?: number | undefined
}

export interface ExecOptions extends SpawnOptions {
  readonly stdin?: string | Uint8Array | undefined
  /** Called with each piece of output. A returned promise pauses that stream. If it throws, the command is killed and the call fails. */
  readonly onOutput?: ((stream: 'stdout' | 'stderr', bytes: Uint8Array) => void | Promise<void>) | undefined
}

/** @internal */
export const SPAWN_SHAPE: Shape<SpawnOptions> = {
  timeout: 'number',
  env: 'object',
  cwd: 'text',
  signal: 'signal',
  maxOutput: 'number',
}

/** @internal */
export const EXEC_SHAPE: Shape<ExecOptions> = { ...SPAWN_SHAPE, stdin: 'bytes', onOutput: 'function' }

/** How a command ended. */
export interface CommandEnd {
  /** The command's exit code. 124 after a timeout, 126 or 127 when it did not start, 128+n after signal n. */
  readonly exitCode: number
  readonly timedOut: boolean
  /** A limit of the sandbox that was reached meanwhile, or null. */
  readonly limit: LimitHit | null
  /** The denials of this command, the last 100. Those that may belong to another command have `by: 'unknown'`. */
  readonly denials: readonly Denial[]
  /** How many refusals are not listed. */
  readonly moreDenials: number
}

export interface ExecResult extends CommandEnd {
  readonly stdout: string
  readonly stderr: string
  /** Whether the middle of stdout or stderr is missing. */
  readonly truncated: boolean
}

/** Below the kernel's limit for arguments, and far below that of a message to the supervisor. */
const MAX_COMMAND_BYTES = 2 ** 20
const MAX_PATH_BYTES = 4095
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/** @internal */
export function orderOf(
  command: CommandLine,
  { env: variables = {}, cwd = '.' }: Pick<SpawnOptions, 'env' | 'cwd'>,
  workspace: string,
): ExecOrder {
  checkValue('a call', 'the command', command, 'command')
  const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : [...command]
  if (argv.length === 0 || argv[0] === '')
    throw usage('the command is empty', 'exec(["ls", "-l"]) or exec("ls -l")')
  if (argv.some(word => word.includes('\0')))
    throw usage('the command contains a NUL byte', 'pass such bytes on stdin or in a file')
  const env = Object.entries(variables).flatMap(([name, value]) => {
    if (value === undefined) return []
    if (!VARIABLE.test(name) || typeof value !== 'string' || value.includes('\0'))
      throw usage(
        `"${name}" of env is not a valid variable`,
        'names are letters, digits and _; values are strings without NUL bytes',
      )
    return [{ name, value }]
  })
  const length = Buffer.byteLength(JSON.stringify([argv, env]))
  if (length > MAX_COMMAND_BYTES)
    throw usage(`a command of ${length} bytes is too long`, 'pass the data on stdin or in a file')
  return { argv, cwd: pathInside(cwd, workspace), env, terminal: undefined }
}

/** An absolute path in the sandbox. The sandbox decides what it refers to. @internal */
export function pathInside(path: string, workspace: string): string {
  checkValue('a call', 'the path', path, 'text')
  const absolute = resolve(workspace, path)
  if (path.includes('\0') || Buffer.byteLength(absolute) > MAX_PATH_BYTES)
    throw usage('the path is too long or contains a NUL byte', 'give the path of a file or directory')
  return absolute
}

/** In milliseconds, within the range of a timer. @internal */
export function timeoutOf(value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (!(value > 0)) throw usage(`the timeout is ${value}`, 'expected milliseconds above 0')
  return Math.min(Math.ceil(value), 2 ** 31 - 1)
}

/** @internal */
export function maxOutputOf(value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (!(value >= 0)) throw usage(`maxOutput is ${value}`, 'expected a number of bytes, 0 or more')
  return Math.floor(value)
}

/** @internal */
export const toBytes = (data: string | Uint8Array): Uint8Array =>
  typeof data === 'string' ? new TextEncoder().encode(data) : data
