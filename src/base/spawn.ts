/** Runs programs of the host to their end. By Bun: loading `node:child_process` takes longer than starting a program. */
import {
  type Captured,
  type CaptureOptions,
  type Child,
  checked,
  collect,
  notStarted,
  type Output,
  type Words,
} from './collect.ts'
import { startProgram } from './start-program.ts'

export type { Captured, CaptureOptions } from './collect.ts'

/** Runs a tool of the host to its end and returns its output. No shell, no $PATH, no inherited environment. */
export const capture = (argv: readonly string[], options: CaptureOptions): Promise<Captured> =>
  collect(argv, options, startByBun)

function startByBun(words: Words, { env, cwd, input }: CaptureOptions): Child {
  const child = startProgram(words, {
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
    // A program may close its input early. Its exit code says whether that is an error.
    feed: text => void feed(child.stdin, text).catch(() => undefined),
    kill: () => child.kill('SIGKILL'),
    close: () => {
      for (const [, reader] of each) reader.cancel().catch(() => undefined)
    },
  }
}

async function feed(stdin: Bun.FileSink | undefined, text: string | Uint8Array): Promise<void> {
  await stdin?.write(text)
  await stdin?.end()
}

/**
 * Runs a program of the user, such as an editor, on this terminal, to its end. It gets the user's environment. Ctrl-C is for
 * the program: pen waits for it and reports the result.
 */
export async function runOnTerminal(
  argv: readonly string[],
  options: { readonly env: Readonly<Record<string, string | undefined>>; readonly cwd: string },
): Promise<{ readonly code: number | null }> {
  const words = checked(argv)
  const ignore = () => {}
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.on(signal, ignore)
  try {
    const child = startProgram(words, {
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
