/** Starts one command, as the kernel and `execvp` would: in a new session, with only the three standard descriptors. */
import { closeSync, statSync, writeFileSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { O_CLOEXEC } from '../base/kernel/descriptor.ts'
import { descriptorsOf } from '../base/kernel/processes.ts'
import { tryCall } from '../base/kernel/system-call.ts'
import { join, resolve } from '../base/posix-path.ts'
import { startProgram } from '../base/start-program.ts'
import type { DaemonSetup, ExecOrder, Variable } from '../protocol/exec-order.ts'
import { INSIDE, SHELL_INSIDE } from '../protocol/guest-paths.ts'
import { asUser } from './as-user.ts'
import { unblockSignals } from './become.ts'
import { MARK } from './kill.ts'

/** Used when no PATH is set. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'
const F_DUPFD_CLOEXEC = 1030
const TIOCGPTN = 0x80045430

export interface Started {
  readonly child: Bun.Subprocess
  readonly input: number
  /** On a terminal, input and output are the same descriptor, and `Command` closes it once. */
  readonly outputs: readonly { readonly stream: 'stdout' | 'stderr'; readonly fd: number }[]
  readonly terminal: boolean
}

type Environment = Record<string, string | undefined>

export class NotStarted extends Error {
  readonly errno: string
  constructor(errno: string, reason: string) {
    super(reason)
    this.errno = errno
  }
}

export const start = (order: ExecOrder, mark: string, setup: DaemonSetup): Started =>
  asUser(setup.user, () => {
    unblockSignals()
    checkDirectory(order.cwd)
    const env = environment(setup.env, order, mark)
    const [first = SHELL_INSIDE, ...rest] = order.argv
    const name = first === SHELL_INSIDE ? shell() : first
    const spawn = (file: string, args: readonly string[]) => {
      const program = { file, argv0: name, args, settings: { ...setup.user, cwd: order.cwd, env } }
      return order.terminal === undefined
        ? withPipes(program, order.joined === true)
        : onTerminal(program, order.terminal)
    }
    const started = firstThatRuns([name, ...rest], order.cwd, env['PATH'] ?? DEFAULT_PATH, spawn)
    preferForOomKill(started.child.pid)
    return started
  })

/**
 * On memory shortage the kernel kills the largest process, which may be the exec daemon. The sandbox would end, and the
 * count of the reason be lost. So commands are killed first.
 */
function preferForOomKill(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500', { flag: 'r+' })
  } catch {
    // The process has ended, or the kernel has no such file.
  }
}

/** Variables that only the exec daemon itself was given, by pen or by the engine. */
const OWN_VARIABLES = /^(LD_PRELOAD|LD_LIBRARY_PATH|LD_AUDIT|BUN_.*|HOSTNAME|container)$/

/** The order's variables override the sandbox's, which override the image's. pen's directory is last on the PATH. */
function environment(sandbox: readonly Variable[], order: ExecOrder, mark: string): Environment {
  const env: Environment = {}
  for (const [name, value] of Object.entries(process.env))
    if (value !== undefined && !OWN_VARIABLES.test(name)) env[name] = value
  env['PATH'] = `${env['PATH'] ?? DEFAULT_PATH}:${INSIDE}`
  for (const { name, value } of [...sandbox, ...order.env]) env[name] = value
  // Programs read SHELL. An image that does not set it has a shell anyway.
  if (env['SHELL'] === undefined && kindOf(shell()) === 'file') env['SHELL'] = shell()
  return { ...env, PWD: order.cwd, [MARK]: mark }
}

function checkDirectory(cwd: string): void {
  try {
    if (!statSync(cwd).isDirectory()) throw new NotStarted('ENOTDIR', `${cwd} is not a directory`)
    // stat shows that the directory exists. This shows that it can be entered.
    statSync(`${cwd}/.`)
  } catch (error) {
    if (error instanceof NotStarted) throw error
    const errno = errnoOf(error) ?? 'EIO'
    const why = errno === 'ENOENT' ? 'does not exist in the sandbox' : 'cannot be entered'
    throw new NotStarted(errno, `the directory ${cwd} ${why}`)
  }
}

const shell = (): string => (kindOf('/bin/bash') === 'file' ? '/bin/bash' : '/bin/sh')

function kindOf(path: string): 'file' | 'directory' | undefined {
  try {
    return statSync(path).isDirectory() ? 'directory' : 'file'
  } catch {
    return undefined
  }
}

/**
 * A file that may not be executed is skipped, and reported when no other is found. A file without a known format is run
 * by the shell.
 */
function firstThatRuns<T>(
  argv: readonly string[],
  cwd: string,
  path: string,
  spawn: (file: string, args: readonly string[]) => T,
): T {
  const [name = '', ...rest] = argv
  const places = (name.includes('/') ? [name] : path.split(':').map(place => join(place, name))).map(file =>
    resolve(cwd, file),
  )
  let refused: unknown
  for (const file of places) {
    const kind = kindOf(file)
    if (places.length > 1 && kind === undefined) continue
    try {
      if (kind === 'directory') throw new NotStarted('EACCES', `${name} is a directory`)
      return spawn(file, rest)
    } catch (error) {
      const errno = error instanceof NotStarted ? error.errno : errnoOf(error)
      if (errno === 'ENOEXEC') return spawn('/bin/sh', [file, ...rest])
      if (errno === 'ENOENT' && kind === 'file')
        throw new NotStarted('ENOEXEC', `${name} could not be started: its interpreter was not found`)
      if (errno !== 'EACCES' && errno !== 'ENOENT') throw notStarted(name, error)
      refused ??= error
    }
  }
  throw name === '' || refused === undefined
    ? new NotStarted('ENOENT', `${name} was not found in the sandbox`)
    : notStarted(name, refused)
}

function notStarted(name: string, error: unknown): Error {
  if (error instanceof NotStarted) return error
  const errno = errnoOf(error)
  if (errno === undefined) return error instanceof Error ? error : new Error(String(error))
  const why = errno === 'ENOENT' ? 'was not found in the sandbox' : `could not be started (${errno})`
  return new NotStarted(errno, `${name} ${why}`)
}

interface Program {
  readonly file: string
  readonly argv0: string
  readonly args: readonly string[]
  readonly settings: {
    readonly cwd: string
    readonly env: Environment
    readonly uid?: number
    readonly gid?: number
  }
}

/** The child gets real pipes that its user owns, so that programs can open /dev/stdout. */
function withPipes({ file, argv0, args, settings }: Program, joined: boolean): Started {
  const opened: number[] = []
  try {
    const [stdin, input] = pipe(opened)
    const [stdout, out] = pipe(opened)
    const [stderr, err] = joined ? [undefined, out] : pipe(opened)
    // Detached: in a new session.
    const options = { ...settings, argv0, detached: true }
    const child = startProgram([file, ...args], { ...options, stdio: [stdin, out, err] })
    for (const fd of new Set([stdin, out, err])) closeSync(fd)
    opened.length = 0
    const outputs = [
      { stream: 'stdout' as const, fd: stdout },
      ...(stderr === undefined ? [] : [{ stream: 'stderr' as const, fd: stderr }]),
    ]
    return { child, input, outputs, terminal: false }
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}

/**
 * The runtime makes the terminal and its session. The runtime's reader has no flow control, so the exec daemon takes
 * over the master at once. Nothing is read before this function returns.
 */
function onTerminal(
  { file, argv0, args, settings }: Program,
  size: NonNullable<ExecOrder['terminal']>,
): Started {
  const known = masters()
  const terminal = { cols: size.columns || 80, rows: size.rows || 24, data: () => undefined }
  const child = startProgram([file, ...args], { ...settings, argv0, terminal })
  // The runtime closes descriptors of earlier terminals late, and numbers return. So terminals are compared too.
  const [made = -1] = [...masters()].find(([fd, terminal]) => known.get(fd) !== terminal) ?? []
  const master = tryCall('fcntl', made, F_DUPFD_CLOEXEC, 3)
  child.terminal?.close()
  if (master >= 0)
    return { child, input: master, outputs: [{ stream: 'stdout', fd: master }], terminal: true }
  child.kill('SIGKILL')
  throw new NotStarted('EMFILE', 'the exec daemon has no descriptor left')
}

/** Terminals by the descriptors of their masters. */
function masters(): ReadonlyMap<number, number> {
  const terminal = new Int32Array(1)
  return new Map(
    descriptorsOf(process.pid).flatMap(path => {
      const fd = Number(path.slice(path.lastIndexOf('/') + 1))
      const isMaster = tryCall('ioctl', fd, TIOCGPTN, new Uint8Array(terminal.buffer)) === 0
      return isMaster ? [[fd, terminal[0] ?? -1] as const] : []
    }),
  )
}

/** [read end, write end]. No other command inherits them. */
function pipe(opened: number[]): readonly [number, number] {
  const ends = new Int32Array(2)
  if (tryCall('pipe2', new Uint8Array(ends.buffer), O_CLOEXEC) < 0)
    throw new NotStarted('EMFILE', 'the exec daemon has no descriptor left')
  opened.push(...ends)
  return [ends[0] ?? -1, ends[1] ?? -1]
}
