import type { ChildProcess } from 'node:child_process'
import { isAbsolute } from 'node:path'
import { errnoOf, PenError } from './error.ts'

export interface CaptureOptions {
  /** Everything the program sees. pen's own environment holds the user's secrets: nothing of it is passed on. */
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly cwd?: string
  /** Bytes of stdout and stderr together before the program is stopped. */
  readonly maxOutput?: number
  /** What stdin holds; without it stdin is empty. Until a promise is kept stdin stays open, and is so no longer when pen is gone. */
  readonly input?: string | Uint8Array | Promise<string>
}

export interface Captured {
  /** null when a signal ended it, as after `timeout` and `output`: only 0 is success. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  /** Why it ended: by itself, or stopped because of time or too much output. */
  readonly ended: 'exit' | 'timeout' | 'output'
}

/** How long a program's children may keep its output open after it has gone. */
const LINGER_MS = 100

/** Runs a tool of the host to its end and returns what it said. No shell, no $PATH, no inherited environment. */
export async function capture(argv: readonly string[], options: CaptureOptions): Promise<Captured> {
  const [program, ...args] = checked(argv)
  const { spawn } = await import('node:child_process')
  const child = start(program, () =>
    spawn(program, args, {
      env: { ...options.env },
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      ...(options.cwd !== undefined && { cwd: options.cwd }),
    }),
  )
  return await collect(child, program, options)
}

/**
 * Runs a program of the user's own on this terminal, to its end: with the user's environment, because it acts for nobody
 * else. Ctrl-C is for the program: pen outlives it, and tells what came of it.
 */
export async function runOnTerminal(
  argv: readonly string[],
  options: { readonly env: Readonly<Record<string, string | undefined>>; readonly cwd: string },
): Promise<{ readonly code: number | null }> {
  const [program, ...args] = checked(argv)
  const { spawn } = await import('node:child_process')
  const ignore = () => {}
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.on(signal, ignore)
  try {
    const child = start(program, () =>
      spawn(program, args, { env: { ...options.env }, cwd: options.cwd, stdio: 'inherit' }),
    )
    return await new Promise((resolve, reject) => {
      child.once('error', error => reject(notStarted(program, error)))
      child.once('exit', code => resolve({ code }))
    })
  } finally {
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.off(signal, ignore)
  }
}

function checked(argv: readonly string[]): [string, ...string[]] {
  const [program, ...args] = argv
  if (program === undefined || !isAbsolute(program))
    throw new PenError('INTERNAL', {
      what: `a program must be named by its absolute path, not "${program ?? ''}"`,
    })
  if (argv.some(word => word.includes('\0')))
    throw new PenError('INTERNAL', { what: `an argument of ${program} has a NUL byte in it` })
  return [program, ...args]
}

function start(program: string, spawn: () => ChildProcess): ChildProcess {
  try {
    return spawn()
  } catch (error) {
    throw notStarted(program, error)
  }
}

function notStarted(program: string, error: unknown): PenError {
  const errno = errnoOf(error)
  const hint = errno === 'EACCES' ? 'make it executable' : 'install it, and check the working directory'
  return new PenError('MISSING_TOOL', {
    what: `could not start ${program} (${errno ?? 'unknown error'})`,
    hint,
    cause: error,
  })
}

function collect(child: ChildProcess, program: string, options: CaptureOptions): Promise<Captured> {
  return new Promise((resolve, reject) => {
    const maxOutput = options.maxOutput ?? 10 * 2 ** 20
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    let size = 0
    let ended: Captured['ended'] = 'exit'
    let linger: NodeJS.Timeout | undefined

    const stop = (why: Captured['ended']): void => {
      if (ended === 'exit') ended = why
      child.kill('SIGKILL')
    }
    const timer = setTimeout(() => stop('timeout'), options.timeoutMs)
    const finish = (code: number | null, signal: NodeJS.Signals | null): void => {
      clearTimeout(timer)
      clearTimeout(linger)
      child.stdout?.destroy()
      child.stderr?.destroy()
      // A code of 0 that raced with our own SIGKILL is not success: the output is not complete.
      const result = ended === 'exit' ? { code, signal } : { code: null, signal: 'SIGKILL' as const }
      resolve({
        ...result,
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
        ended,
      })
    }
    const keep = (chunks: Buffer[]) => (chunk: Buffer) => {
      const room = maxOutput - size
      size += chunk.length
      if (room > 0) chunks.push(chunk.subarray(0, room))
      if (size > maxOutput) stop('output')
    }

    child.stdout?.on('data', keep(stdout))
    child.stderr?.on('data', keep(stderr))
    // A program that does not read its input closes the pipe: its exit code tells what it thinks of that.
    child.stdin?.on('error', () => {})
    const { input } = options
    if (input instanceof Promise) void input.then(text => child.stdin?.end(text))
    else child.stdin?.end(input)
    child.once('error', error => {
      clearTimeout(timer)
      reject(notStarted(program, error))
    })
    child.once('exit', (code, signal) => {
      linger = setTimeout(finish, LINGER_MS, code, signal)
    })
    child.once('close', finish)
  })
}
