/** Joins an execution to this process: its input and outputs are ours until it ends. Used on the host only, by whoever wants the command. */
import { fstatSync, type Stats } from 'node:fs'
import type { ExecEnding, ExecOrder, Running } from '../backend/backend.ts'
import { EXIT, type ExitCode } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { refuseDirectory } from '../base/refuse-directory.ts'
import { forwardSignals } from './pass-signals.ts'
import { signalNumber } from './signals.ts'
import { isTerminal } from './termios.ts'

export interface AttachOptions {
  /** Whether our stdin is the command's; otherwise its input is empty. */
  readonly input?: boolean
  /** A terminal of the sandbox's own for the command: where ours is one, unless said otherwise. */
  readonly terminal?: boolean
  /** Signals that reach us are the command's. False where somebody else passes them on. */
  readonly signals?: boolean
}

export async function attach(
  exec: NonNullable<Running['exec']>,
  order: Omit<ExecOrder, 'terminal'>,
  { input = true, terminal = isTerminal(0) && isTerminal(1), signals = true }: AttachOptions = {},
): Promise<ExecEnding> {
  const [, stdout, stderr] = [0, 1, 2].map(streamOf)
  if (terminal) {
    const { attachTerminal } = await import('./attach-terminal.ts')
    return await attachTerminal(exec, order, { input, signals })
  }
  const { Outputs } = await import('./outputs.ts')
  const outputs = new Outputs()
  const execution = exec({ ...order, terminal: undefined, joined: isSame(stdout, stderr) }, (stream, bytes) =>
    outputs.put(stream, bytes),
  )
  outputs.onClosed = () => execution.signal('SIGPIPE')
  const forget = signals ? forwardSignals(signal => execution.signal(signal)) : () => undefined
  if (input) void relayInput(execution)
  else execution.endInput()
  try {
    const ending = await execution.ended
    await outputs.flush()
    // As for other programs in a pipeline whose reader has gone.
    return outputs.isClosed ? { kind: 'signal', signal: signalNumber('SIGPIPE') } : ending
  } finally {
    forget()
  }
}

/** Undefined for one that is closed. */
function streamOf(fd: number): Stats | undefined {
  let stat: Stats
  try {
    stat = fstatSync(fd)
  } catch {
    return undefined
  }
  refuseDirectory(fd, stat)
  return stat
}

/** One file, pipe or terminal under two numbers. */
const isSame = (one: Stats | undefined, other: Stats | undefined): boolean =>
  one !== undefined && one.dev === other?.dev && one.ino === other.ino

async function relayInput(execution: ReturnType<NonNullable<Running['exec']>>): Promise<void> {
  try {
    for await (const bytes of Bun.stdin.stream()) await execution.write(bytes)
  } catch {
    // A closed or unreadable stdin is an empty one.
  }
  execution.endInput()
}

/** For a person, escaped: the reason is the exec daemon's word, and hostile. Undefined for a command that was started. */
export function whyNotStarted(ending: ExecEnding, argv: readonly string[]): string | undefined {
  if (ending.kind !== 'not-started') return undefined
  const { errno, reason = '' } = ending
  const what = `${argv[0] ?? 'the shell'} could not be started in the sandbox (${errno})`
  return printable(reason === '' ? what : reason, 400)
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
