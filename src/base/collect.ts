/** Collects the output of a program, within bounds of time and size, and how it ended. */
import { errnoOf, errnoText, PenError } from './error.ts'
import { isAbsolute } from './posix-path.ts'

export interface CaptureOptions {
  /** The whole environment of the program. pen's own environment holds the user's secrets and is not passed on. */
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly cwd?: string
  /** Bytes of stdout and stderr together before the program is stopped. */
  readonly maxOutput?: number
  /** The input; empty by default. While a promise is pending, stdin stays open until pen ends. */
  readonly input?: string | Uint8Array | Promise<string>
}

export interface Captured {
  /** null when a signal ended it, as for `timeout` and `output`. Only 0 is success. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  /** Why it ended: by itself, after a timeout, or after too much output. */
  readonly ended: 'exit' | 'timeout' | 'output'
}

/** How long children of a program may keep its output open after its end. */
const LINGER_MS = 100

export type Words = readonly [string, ...string[]]

/** Runs a program to its end and returns its output. `start` starts it on Bun or on Node. */
export async function collect(
  argv: readonly string[],
  options: CaptureOptions,
  start: (words: Words, options: CaptureOptions) => Child | Promise<Child>,
): Promise<Captured> {
  const words = checked(argv)
  let child: Child
  try {
    child = await start(words, options)
  } catch (error) {
    throw notStarted(words[0], error)
  }
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
  let linger: ReturnType<typeof setTimeout> | undefined
  try {
    // A rejected promise means empty input. Its owner handles the rejection.
    if (input !== undefined)
      void Promise.resolve(input).then(
        text => child.feed(text),
        () => child.feed(''),
      )
    const { code, signal } = await child.exited
    const patience = new Promise(resolve => {
      linger = setTimeout(resolve, LINGER_MS)
    })
    await Promise.race([reading, patience])
    return {
      // An exit code of 0 that raced with our SIGKILL is not success: the output is incomplete.
      ...(ended === 'exit' ? { code, signal } : { code: null, signal: 'SIGKILL' }),
      stdout: Buffer.concat(said.stdout).toString(),
      stderr: Buffer.concat(said.stderr).toString(),
      ended,
    }
  } finally {
    clearTimeout(timer)
    clearTimeout(linger)
    child.close()
  }
}

export type Output = 'stdout' | 'stderr'

/** A running program, started by Bun or by Node: the library runs on both. */
export interface Child {
  readonly exited: Promise<Pick<Captured, 'code' | 'signal'>>
  /** Resolves when both outputs have ended. */
  read(take: (output: Output, chunk: Uint8Array) => void): Promise<void>
  feed(input: string | Uint8Array): void
  kill(): void
  /** Stops reading, also when another process still holds an output open. */
  close(): void
}

export function checked(argv: readonly string[]): Words {
  const [program, ...args] = argv
  if (program === undefined || !isAbsolute(program))
    throw new PenError('INTERNAL', {
      what: `a program must be named by its absolute path, not "${program ?? ''}"`,
    })
  if (argv.some(word => word.includes('\0')))
    throw new PenError('INTERNAL', { what: `an argument of ${program} has a NUL byte in it` })
  return [program, ...args]
}

export function notStarted(program: string, error: unknown): PenError {
  const errno = errnoOf(error)
  const hint = errno === 'EACCES' ? 'make it executable' : 'install it, and check the working directory'
  return new PenError('MISSING_TOOL', {
    what: `could not start ${program} (${errnoText(error)})`,
    hint,
    cause: error,
  })
}
