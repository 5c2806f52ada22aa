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
  const words = checked(argv)
  const child = await start(words, options)
  const { timeoutMs, maxOutput = 10 * 2 ** 20, input } = options
  const said: Record<Output, Uint8Array[]> = { stdout: [], stderr: [] }
  let size = 0
  let ended: Captured['ended'] = 'exit'
  const stop = (why: Captured['ended']): void => {
    if (ended === 'exit') ended = why
    child.kill()
  }
  const reading = child.read((output, chunk) => {
    const room = maxOutput - size
    size += chunk.length
    if (room > 0) said[output].push(chunk.subarray(0, room))
    if (size > maxOutput) stop('output')
  })
  const timer = setTimeout(stop, timeoutMs, 'timeout')
  try {
    if (input !== undefined) void Promise.resolve(input).then(text => child.feed(text))
    const { code, signal } = await child.exited
    await Promise.race([reading, new Promise(resolve => setTimeout(resolve, LINGER_MS))])
    return {
      // A code of 0 that raced with our own SIGKILL is not success: the output is not complete.
      ...(ended === 'exit' ? { code, signal } : { code: null, signal: 'SIGKILL' }),
      stdout: Buffer.concat(said.stdout).toString(),
      stderr: Buffer.concat(said.stderr).toString(),
      ended,
    }
  } finally {
    clearTimeout(timer)
    child.close()
  }
}

type Output = 'stdout' | 'stderr'

/** A program that runs, whichever runtime started it. */
interface Child {
  readonly exited: Promise<Pick<Captured, 'code' | 'signal'>>
  /** Resolves when both outputs have ended. */
  read(take: (output: Output, chunk: Uint8Array) => void): Promise<void>
  feed(input: string | Uint8Array): void
  kill(): void
  /** Whoever still holds an output is heard no more. */
  close(): void
}

/** The library runs on Node, too. Its module takes Bun longer to load than a program to start. */
async function start(words: readonly [string, ...string[]], options: CaptureOptions): Promise<Child> {
  try {
    return typeof Bun === 'undefined' ? await startByNode(words, options) : startByBun(words, options)
  } catch (error) {
    throw notStarted(words[0], error)
  }
}

function startByBun(words: readonly string[], { env, cwd, input }: CaptureOptions): Child {
  const child = Bun.spawn([...words], {
    env: { ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
  const readers = { stdout: child.stdout.getReader(), stderr: child.stderr.getReader() }
  const each = Object.entries(readers) as [Output, typeof readers.stdout][]
  return {
    exited: child.exited.then(() => ({
      code: child.exitCode,
      signal: child.signalCode as NodeJS.Signals | null,
    })),
    read: async take => {
      const all = each.map(async ([output, reader]) => {
        for (let next = await reader.read(); !next.done; next = await reader.read()) take(output, next.value)
      })
      await Promise.all(all).catch(() => undefined)
    },
    feed: text => {
      // A program that does not read its input closes the pipe: its exit code tells what it thinks of that.
      try {
        child.stdin?.write(text)
        void Promise.resolve(child.stdin?.end()).catch(() => undefined)
      } catch {}
    },
    kill: () => child.kill('SIGKILL'),
    close: () => {
      for (const [, reader] of each) reader.cancel().catch(() => undefined)
    },
  }
}

async function startByNode(
  [program, ...args]: readonly [string, ...string[]],
  { env, cwd, input }: CaptureOptions,
): Promise<Child> {
  const { spawn } = await import('node:child_process')
  const child = spawn(program, args, {
    env: { ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
  child.stdin?.on('error', () => {})
  return {
    exited: new Promise(resolve => child.once('exit', (code, signal) => resolve({ code, signal }))),
    read: take =>
      new Promise(resolve => {
        for (const output of ['stdout', 'stderr'] as const)
          child[output]?.on('data', (chunk: Uint8Array) => take(output, chunk))
        child.once('close', () => resolve())
      }),
    feed: text => void child.stdin?.end(text),
    kill: () => void child.kill('SIGKILL'),
    close: () => {
      child.stdout?.destroy()
      child.stderr?.destroy()
    },
  }
}

/**
 * Runs a program of the user's own on this terminal, to its end: with the user's environment, because it acts for nobody
 * else. Ctrl-C is for the program: pen outlives it, and tells what came of it.
 */
export async function runOnTerminal(
  argv: readonly string[],
  options: { readonly env: Readonly<Record<string, string | undefined>>; readonly cwd: string },
): Promise<{ readonly code: number | null }> {
  const words = checked(argv)
  const ignore = () => {}
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.on(signal, ignore)
  try {
    const child = Bun.spawn(words, {
      env: { ...options.env },
      cwd: options.cwd,
      stdio: ['inherit', 'inherit', 'inherit'],
    })
    await child.exited
    return { code: child.exitCode }
  } catch (error) {
    throw notStarted(words[0], error)
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

function notStarted(program: string, error: unknown): PenError {
  const errno = errnoOf(error)
  const hint = errno === 'EACCES' ? 'make it executable' : 'install it, and check the working directory'
  return new PenError('MISSING_TOOL', {
    what: `could not start ${program} (${errno ?? 'unknown error'})`,
    hint,
    cause: error,
  })
}
