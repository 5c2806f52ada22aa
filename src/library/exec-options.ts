/** What a program may say of a command, and what it is told of it. */
import { resolve } from 'node:path/posix'
import type { ExecOrder } from '../protocol/exec-order.ts'
import { checkValue, type Shape, usage } from './check-options.ts'
import type { Denial, LimitHit } from './denial.ts'

/** Words, which no shell reads; or a line for `/bin/sh` of the sandbox. */
export type CommandLine = string | readonly string[]

export interface SpawnOptions {
  /**
   * In milliseconds. One above `exec.ceiling` of the policy is an error. Without it, `exec()` takes `exec.timeout` of the policy (120 s), and
   * `spawn()` has none: its command runs until it ends, is killed, or the sandbox ends.
   */
  readonly timeout?: number | undefined
  /** On top of the sandbox's own variables. Nothing of this program's environment goes inside by itself. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** In the sandbox; relative to the project. */
  readonly cwd?: string | undefined
  /** Ends the command, and all that it started. */
  readonly signal?: AbortSignal | undefined
  /** Bytes of stdout and of stderr that the result has, each: its beginning and its end. `exec.maxOutput` where nothing is said. */
  readonly maxOutput?: number | undefined
}

export interface ExecOptions extends SpawnOptions {
  readonly stdin?: string | Uint8Array | undefined
  /** Sees all output as it comes. A promise holds that stream back until it is kept. When it fails the command is ended, and the call fails. */
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
  /** Its own; 124 when its time was over, 126 and 127 when it could not be started, 128+n after signal n. */
  readonly exitCode: number
  readonly timedOut: boolean
  /** A bound of the sandbox that was reached meanwhile; null when none was. */
  readonly limit: LimitHit | null
  /** What it was refused; and what was refused meanwhile to a command that cannot be told, marked as such. At most 100. */
  readonly denials: readonly Denial[]
}

export interface ExecResult extends CommandEnd {
  readonly stdout: string
  readonly stderr: string
  /** Whether output was left out. */
  readonly truncated: boolean
}

/** Within what the kernel lets a program be started with, and well within a message to the supervisor. */
const LONGEST = 2 ** 20
const LONGEST_PATH = 4095
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
    throw usage('there is no command', 'exec(["ls", "-l"]) or exec("ls -l")')
  if (argv.some(word => word.includes('\0')))
    throw usage('the command has a NUL byte in it', 'give such bytes by stdin, or in a file')
  const env = Object.entries(variables).flatMap(([name, value]) => {
    if (value === undefined) return []
    if (!VARIABLE.test(name) || typeof value !== 'string' || value.includes('\0'))
      throw usage(
        `"${name}" of env is not a variable`,
        'names are letters, digits and _; values are texts without NUL bytes',
      )
    return [{ name, value }]
  })
  const length = Buffer.byteLength(JSON.stringify([argv, env]))
  if (length > LONGEST) throw usage(`a command of ${length} bytes`, 'give it by stdin, or in a file')
  return { argv, cwd: pathInside(cwd, workspace), env, terminal: undefined }
}

/** Absolute. It is only a name here: what stands there, the sandbox decides. @internal */
export function pathInside(path: string, workspace: string): string {
  checkValue('a call', 'the path', path, 'text')
  const made = resolve(workspace, path)
  if (path.includes('\0') || Buffer.byteLength(made) > LONGEST_PATH)
    throw usage('the path is too long, or has a NUL byte in it', 'name a file or directory')
  return made
}

/** Milliseconds that a timer can count. @internal */
export function timeoutOf(asked: number | undefined, standard: number): number {
  if (asked === undefined) return standard
  if (!(asked > 0)) throw usage(`a timeout of ${asked}`, 'give milliseconds, more than 0')
  return Math.min(Math.ceil(asked), 2 ** 31 - 1)
}

/** Of output. @internal */
export function bytesOf(asked: number | undefined, standard: number): number {
  if (asked === undefined) return standard
  if (!(asked >= 0)) throw usage(`${asked} is no number of bytes`, 'give 0 or more')
  return Math.floor(asked)
}

/** @internal */
export const toBytes = (data: string | Uint8Array): Uint8Array =>
  typeof data === 'string' ? new TextEncoder().encode(data) : data
