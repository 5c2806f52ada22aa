/**
 * A command on a terminal of the sandbox's own, shown on ours. Ours is raw meanwhile, so that every key goes there; what comes back
 * is hostile, passes the filter, and whatever modes it changed are changed back.
 */
import type { ExecEnding, ExecOrder, Running } from '../backend/backend.ts'
import { TerminalFilter } from './filter.ts'
import { SavedModes, windowSize } from './host-terminal.ts'
import { writerTo } from './nonblocking-writer.ts'
import { forwardSignals } from './pass-signals.ts'
import { Bell, setScreen } from './screen.ts'
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
  // Where it, or its reader, is gone: SIGHUP or the next look tells.
  const shown = writerTo(1)
  const bell = new Bell(
    () => filter?.isBetween === true,
    bytes => void shown.write(bytes),
  )
  const { cols, rows } = windowSize(screen ?? 1)
  const execution = exec({ ...order, terminal: { columns: cols, rows } }, (_, bytes) => {
    const harmless = filter?.push(bytes) ?? bytes
    if (filter !== undefined) modes.saw(Buffer.from(harmless).toString('latin1'))
    const written = shown.write(harmless)
    bell.now()
    return written
  })
  // Its terminal is inside: what it asks of the screen is all that is known of its modes.
  const endShowing = setScreen({
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
  // Also when pen ends by a mistake of its own, which the sandbox may have found.
  process.once('exit', giveBack)
  process.on('SIGWINCH', onResize)
  const forget = signals ? forwardSignals(signal => execution.signal(signal)) : () => undefined
  if (!isTerminal(0)) relay()
  try {
    const ending = await execution.ended
    if (filter !== undefined) void shown.write(filter.end())
    return ending
  } finally {
    endShowing()
    process.off('exit', giveBack)
    process.off('SIGWINCH', onResize)
    if (screen !== undefined) void shown.write(Buffer.from(modes.undo()))
    await shown.finish()
    restore()
    forget()
  }
}

async function relayKeys(execution: ReturnType<NonNullable<Running['exec']>>): Promise<void> {
  try {
    for await (const keys of Bun.stdin.stream()) await execution.write(keys)
  } catch {
    // As below.
  }
  // A terminal that is gone hangs up; a pipe that has ended is the end of the input.
  if (isTerminal(0)) execution.signal('SIGHUP')
  else execution.endInput()
}
