/**
 * Runs a command on a pty inside the sandbox and shows it on the user's terminal. The user's terminal is raw meanwhile, so that every
 * key goes inside. Output is hostile: it passes the filter, and terminal modes that it changed are restored at the end.
 */
import type { ExecEnding, ExecOrder, Running } from '../backend/backend.ts'
import { TerminalFilter } from './filter.ts'
import { SavedModes, windowSize } from './host-terminal.ts'
import { writerTo } from './nonblocking-writer.ts'
import { Bell, setScreen } from './screen.ts'
import { forwardSignals } from './signals.ts'
import { takeTerminal } from './take-terminal.ts'
import { isTerminal } from './termios.ts'

export async function attachTerminal(
  exec: NonNullable<Running['exec']>,
  order: Omit<ExecOrder, 'terminal'>,
  { input, signals }: { readonly input: boolean; readonly signals: boolean },
): Promise<ExecEnding> {
  const screen = isTerminal(1) ? 1 : isTerminal(2) ? 2 : isTerminal(0) ? 0 : undefined
  const filter = screen === undefined ? undefined : new TerminalFilter()
  const modes = new SavedModes()
  const shown = writerTo(1)
  const bell = new Bell(
    () => filter?.isAtBoundary === true,
    bytes => void shown.write(bytes),
  )
  const { cols, rows } = windowSize(screen ?? 1)
  const execution = exec({ ...order, terminal: { columns: cols, rows } }, (_, bytes) => {
    const filtered = filter?.push(bytes) ?? bytes
    if (filter !== undefined) modes.observe(Buffer.from(filtered).toString('latin1'))
    const written = shown.write(filtered)
    bell.flush()
    return written
  })
  // The pty is inside, so its termios is not visible. Only the output shows whether a program draws.
  const unsetScreen = setScreen({
    isFullScreen: () => filter !== undefined && modes.isFullScreen,
    ring: () => bell.ring(),
  })
  const relay = (): void => void (input && relayKeys(execution))
  const restore = input && isTerminal(0) ? takeTerminal(0, relay) : () => undefined
  const onResize = (): void => {
    const size = windowSize(screen ?? 1)
    execution.resize(size.cols, size.rows)
  }
  const giveBack = (): void => {
    if (screen !== undefined) void shown.write(Buffer.from(modes.undo()))
    restore()
  }
  // Also when pen crashes: the sandbox may have found a bug.
  process.once('exit', giveBack)
  process.on('SIGWINCH', onResize)
  const stopForwarding = signals ? forwardSignals(signal => execution.signal(signal)) : () => undefined
  if (!isTerminal(0)) relay()
  try {
    const ending = await execution.ended
    if (filter !== undefined) void shown.write(filter.end())
    return ending
  } finally {
    unsetScreen()
    process.off('exit', giveBack)
    process.off('SIGWINCH', onResize)
    if (screen !== undefined) void shown.write(Buffer.from(modes.undo()))
    await shown.finish()
    restore()
    stopForwarding()
  }
}

async function relayKeys(execution: ReturnType<NonNullable<Running['exec']>>): Promise<void> {
  try {
    for await (const keys of Bun.stdin.stream()) await execution.write(keys)
  } catch {
    // Reading failed: handled as the end of input.
  }
  // The end of a terminal is a hangup. The end of a pipe is the end of input.
  if (isTerminal(0)) execution.signal('SIGHUP')
  else execution.endInput()
}
