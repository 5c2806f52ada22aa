/** Joins an execution to this process: its input and outputs are ours until it ends. */
import { writeSync } from 'node:fs'
import type { ExecEnding, ExecOrder, Running } from '../backend/backend.ts'
import { EXIT, type ExitCode } from '../base/error.ts'

export async function attach(
  exec: NonNullable<Running['exec']>,
  order: Omit<ExecOrder, 'terminal'>,
): Promise<ExitCode> {
  const execution = exec({ ...order, terminal: undefined }, (stream, bytes) => {
    for (let done = 0; done < bytes.length; ) done += writeSync(stream === 'stdout' ? 1 : 2, bytes, done)
    return undefined
  })
  void (async () => {
    for await (const bytes of Bun.stdin.stream()) await execution.write(bytes)
    execution.endInput()
  })().catch(() => undefined)
  return exitCodeOf(await execution.ended)
}

/** As a shell tells it. */
export function exitCodeOf(ending: ExecEnding): ExitCode {
  switch (ending.kind) {
    case 'exit':
      return ending.code
    case 'signal':
      return 128 + ending.signal
    case 'not-started':
      return ending.errno === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable
    case 'lost':
      return 128 + 9
  }
}
