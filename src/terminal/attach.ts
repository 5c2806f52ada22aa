/** Connects a command in the sandbox to the stdin, stdout and stderr of this process until it ends. Runs on the host. */
import { fstatSync, type Stats } from 'node:fs'
import type { ExecEnding, ExecOrder, Execution, Running } from '../backend/backend.ts'
import { EXIT, type ExitCode } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { refuseDirectory } from '../base/refuse-directory.ts'
import { Outputs } from './outputs.ts'
import { SandboxScreen } from './screen.ts'
import { forwardSignals, signalNumber } from './signals.ts'
import { isTerminal } from './termios.ts'

interface AttachOptions {
  /** Connects stdin. Otherwise the command's input is empty. */
  readonly input?: boolean
  /** Gives the command a pty inside. The default is true when stdin and stdout are terminals. */
  readonly terminal?: boolean
  /** Forwards signals to the command. False when the caller forwards them. */
  readonly signals?: boolean
}

export async function attach(
  exec: NonNullable<Running['exec']>,
  order: Omit<ExecOrder, 'terminal'>,
  { input = true, terminal = isTerminal(0) && isTerminal(1), signals = true }: AttachOptions = {},
): Promise<ExecEnding> {
  const [, stdout, stderr] = [0, 1, 2].map(streamOf)
  if (terminal) return await attachTerminal(exec, order, { input, signals })
  const outputs = new Outputs()
  const execution = exec({ ...order, terminal: undefined, joined: isSame(stdout, stderr) }, (stream, bytes) =>
    outputs.put(stream, bytes),
  )
  outputs.onClosed = () => execution.signal('SIGPIPE')
  const stopForwarding = signals ? forwardSignals(signal => execution.signal(signal)) : () => undefined
  if (input) void relayInput(execution, () => execution.endInput())
  else execution.endInput()
  try {
    const ending = await execution.ended
    await outputs.flush()
    // A program in a pipeline whose reader has ended dies of SIGPIPE.
    return outputs.isClosed ? { kind: 'signal', signal: signalNumber('SIGPIPE') } : ending
  } finally {
    stopForwarding()
  }
}

/**
 * Runs the command on a pty inside the sandbox and shows it on the user's terminal. The user's terminal is raw meanwhile, so that every
 * key goes inside.
 */
async function attachTerminal(
  exec: NonNullable<Running['exec']>,
  order: Omit<ExecOrder, 'terminal'>,
  { input, signals }: { readonly input: boolean; readonly signals: boolean },
): Promise<ExecEnding> {
  const screen = new SandboxScreen(1, [1, 2, 0].find(isTerminal))
  const { cols, rows } = screen.size
  const execution = exec({ ...order, terminal: { columns: cols, rows } }, (_, bytes) => screen.show(bytes))
  const isKeyboard = isTerminal(0)
  // The end of a terminal is a hangup. The end of a pipe is the end of input.
  const atEnd = (): void => (isTerminal(0) ? execution.signal('SIGHUP') : execution.endInput())
  const relay = (): void => void (input && relayInput(execution, atEnd))
  // The pty is inside, so its termios is not visible. Only the output shows whether a program draws.
  screen.begin({
    resize: size => execution.resize(size.cols, size.rows),
    relayKeys: input && isKeyboard ? relay : undefined,
  })
  const stopForwarding = signals ? forwardSignals(signal => execution.signal(signal)) : () => undefined
  if (!isKeyboard) relay()
  try {
    return await execution.ended
  } finally {
    await screen.end()
    stopForwarding()
  }
}

/** Undefined for a closed descriptor. */
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

/** Whether two descriptors refer to the same file, pipe or terminal. */
const isSame = (one: Stats | undefined, other: Stats | undefined): boolean =>
  one !== undefined && one.dev === other?.dev && one.ino === other.ino

async function relayInput(execution: Execution, atEnd: () => void): Promise<void> {
  try {
    for await (const bytes of Bun.stdin.stream()) await execution.write(bytes)
  } catch {
    // A closed or unreadable stdin counts as ended.
  }
  atEnd()
}

/** Why the command did not start, escaped for a terminal: the reason comes from the sandbox and is hostile. */
export function whyNotStarted(ending: ExecEnding, argv: readonly string[]): string | undefined {
  if (ending.kind !== 'not-started') return undefined
  const { errno, reason = '' } = ending
  const what = `cannot start ${argv[0] ?? 'the shell'} in the sandbox (${errno})`
  return printable(reason === '' ? what : reason, 400)
}

/** The exit code that a shell would report. */
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
