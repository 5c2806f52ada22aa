/**
 * A terminal of the sandbox's own. Wherever a descriptor of pen's is the user's terminal, the sandbox gets this one
 * instead, so that it can neither read the user's keys past its end, nor change the modes, nor type into the shell.
 */
import { closeSync } from 'node:fs'
import { TerminalFilter } from './filter.ts'
import { disableOutputProcessing, SavedModes, windowSize } from './host-terminal.ts'
import { LineState } from './line-state.ts'
import { NonblockingWriter, writerTo } from './nonblocking-writer.ts'
import { openTerminal, resize } from './pseudo-terminal.ts'
import { Bell, isRaw, setScreen } from './screen.ts'
import { takeTerminal } from './take-terminal.ts'

type Stdio = readonly [number | 'inherit', number | 'inherit', number | 'inherit']

export interface Pty {
  readonly stdio: Stdio
  /** Whether the command's stdin is this terminal, so that it should also be its controlling one. */
  readonly interactive: boolean
  /** Call when pen will say something after the close: it then begins on a line of its own. */
  startNewLine(): void
  /** Call when all of the command has ended: shows what is left, and gives the user's terminal back. */
  close(): Promise<void>
}

/** `ours` are those of the three descriptors that are terminals: at least one. */
export function openPty(ours: readonly number[]): Pty {
  const screen = ours.includes(1) ? 1 : ours.includes(2) ? 2 : 0
  const shown = writerTo(screen)
  const filter = new TerminalFilter()
  const modes = new SavedModes()
  const line = new LineState()
  const { master, slave } = openTerminal(windowSize(screen))
  const reader = Bun.file(master).stream().getReader()
  const bell = new Bell(
    () => filter.isBetween,
    bytes => void shown.write(bytes),
  )
  const showing = showAll(reader, bytes => {
    const harmless = filter.push(bytes)
    const text = Buffer.from(harmless).toString('latin1')
    modes.saw(text)
    line.saw(text)
    const written = shown.write(harmless)
    bell.now()
    return written
  })
  const interactive = ours.includes(0)
  const keyboard = new NonblockingWriter(master)
  let isOpen = true
  const endShowing = setScreen({
    isFullScreen: () => isOpen && (isRaw(master) || modes.isFullScreen),
    ring: () => bell.ring(),
  })
  const hangUp = async (): Promise<void> => {
    if (!isOpen) return
    isOpen = false
    // Nobody may be left who uses its number: the next file that pen opens has the same.
    keyboard.close()
    await reader.cancel().catch(() => undefined)
    closeSync(master)
  }
  const relay = (): void => {
    // The user's terminal is gone. If it was ours to be told by, SIGHUP does; the sandbox's own is gone with it in any case.
    void relayKeys(keyboard, () => isOpen).then(hangUp)
  }
  // Whose terminal is not raw makes its own line ends: twice would be once too often.
  const restore = interactive ? takeTerminal(0, relay) : disableOutputProcessing(slave)
  const onResize = () => {
    if (isOpen) resize(master, windowSize(screen))
  }
  process.on('SIGWINCH', onResize)
  const giveBack = () => {
    void shown.write(Buffer.from(modes.undo()))
    restore()
  }
  // Also when pen ends by a mistake of its own, which the sandbox may have found.
  process.once('exit', giveBack)
  return {
    stdio: [0, 1, 2].map(fd => (ours.includes(fd) ? slave : 'inherit')) as unknown as Stdio,
    interactive,
    startNewLine: () => line.wantBegin(),
    close: async () => {
      process.off('SIGWINCH', onResize)
      endShowing()
      // Nobody else has it any more: so the last words are followed by an end.
      closeSync(slave)
      await shown.finish(showing)
      await shown.finish(shown.write(Buffer.concat([filter.end(), Buffer.from(modes.undo() + line.undo())])))
      process.off('exit', giveBack)
      restore()
      await hangUp()
      shown.close()
    },
  }
}

interface Source {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
}

/** Not faster than the screen takes it: whoever writes more waits in the kernel, and pen piles nothing up. */
async function showAll(
  source: Source,
  show: (bytes: Uint8Array) => undefined | Promise<void>,
): Promise<void> {
  try {
    for (let next = await source.read(); next.value !== undefined; next = await source.read())
      await show(next.value)
  } catch {
    // Its last holder has gone.
  }
}

async function relayKeys(keyboard: NonblockingWriter, isOpen: () => boolean): Promise<void> {
  try {
    for await (const keys of Bun.stdin.stream()) {
      if (!isOpen()) return
      await keyboard.write(keys)
    }
  } catch {
    // It cannot be read any more.
  }
}
