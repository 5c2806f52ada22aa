/** Runs pen's hidden modes: programs that get open descriptors from 3 on, a text as input, and no environment. */
import { startProgram } from '../start-program.ts'

export interface DescriptorRun {
  readonly descriptors: readonly number[]
  readonly input: string
  readonly timeoutMs: number
  /** Kills it before the timeout. */
  readonly signal?: AbortSignal
}

export interface DescriptorRan {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export async function runWithDescriptors(
  argv: readonly string[],
  { descriptors, input, timeoutMs, signal }: DescriptorRun,
): Promise<DescriptorRan> {
  const child = startProgram(argv, {
    stdio: [Buffer.from(input), 'pipe', 'pipe', ...descriptors],
    env: {},
    cwd: '/',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    ...(signal !== undefined && { signal }),
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stdout, stderr }
}
