/**
 * A pty for the sandbox. It replaces every descriptor that is the user's terminal. So the sandbox cannot read keys after its end,
 * change terminal modes, or type into the user's shell.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { O_CLOEXEC } from '../base/kernel/descriptor.ts'
import { systemCall } from '../base/kernel/system-call.ts'
import { disableOutputProcessing, type WindowSize } from './host-terminal.ts'
import { NonblockingWriter } from './nonblocking-writer.ts'
import { SandboxScreen } from './screen.ts'
import { isRaw, readTermios } from './termios.ts'

const TIOCSPTLCK = 0x40045431
const TIOCGPTPEER = 0x5441
const TIOCSWINSZ = 0x5414
const TCSETS = 0x5402
const IUTF8 = 0o40000

type Stdio = readonly [number | 'inherit', number | 'inherit', number | 'inherit']

export interface Pty {
  readonly stdio: Stdio
  /** Whether the command's stdin is this pty. The pty is then also its controlling terminal. */
  readonly interactive: boolean
  /** Makes `close` end an unfinished line, so that pen's messages start on a new one. */
  startNewLine(): void
  /** Call after the last process has ended. Shows the remaining output and restores the user's terminal. */
  close(): Promise<void>
}

/** `terminals` are the standard descriptors that are terminals: at least one. */
export function openPty(terminals: readonly number[]): Pty {
  const terminal = terminals.includes(1) ? 1 : terminals.includes(2) ? 2 : 0
  const screen = new SandboxScreen(terminal, terminal)
  const { master, slave } = openPtyPair(screen.size)
  const reader = Bun.file(master).stream().getReader()
  const showing = showAll(reader, bytes => screen.show(bytes))
  const interactive = terminals.includes(0)
  const keyboard = new NonblockingWriter(master)
  let isOpen = true
  const hangUp = async (): Promise<void> => {
    if (!isOpen) return
    isOpen = false
    // Stop every user of this descriptor before closing it: the next open() reuses its number.
    keyboard.close()
    await reader.cancel().catch(() => undefined)
    closeSync(master)
  }
  // A terminal that is not raw converts line ends itself, so the pty must not.
  if (!interactive) disableOutputProcessing(slave)
  screen.begin({
    isRaw: () => isOpen && isRaw(master),
    resize: size => {
      if (isOpen) resize(master, size)
    },
    // Input ends when the user's terminal has gone. The sandbox's pty then hangs up too.
    relayKeys: interactive ? () => void relayKeys(keyboard, () => isOpen).then(hangUp) : undefined,
  })
  return {
    stdio: [0, 1, 2].map(fd => (terminals.includes(fd) ? slave : 'inherit')) as unknown as Stdio,
    interactive,
    startNewLine: () => screen.startNewLine(),
    close: async () => {
      // pen has the last slave descriptor. Closing it ends the output stream.
      closeSync(slave)
      await screen.end(showing)
      await hangUp()
    },
  }
}

interface Source {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
}

/** Reads only as fast as the screen accepts output. A faster writer blocks in the kernel, so pen buffers nothing. */
async function showAll(
  source: Source,
  show: (bytes: Uint8Array) => undefined | Promise<void>,
): Promise<void> {
  try {
    for (let next = await source.read(); next.value !== undefined; next = await source.read())
      await show(next.value)
  } catch {
    // EIO: the last slave descriptor is closed.
  }
}

async function relayKeys(keyboard: NonblockingWriter, isOpen: () => boolean): Promise<void> {
  try {
    for await (const keys of Bun.stdin.stream()) {
      if (!isOpen()) return
      await keyboard.write(keys)
    }
  } catch {
    // stdin is unreadable: it counts as ended.
  }
}

/** A new pty. `master` is non-blocking. */
export function openPtyPair(size: WindowSize): { readonly master: number; readonly slave: number } {
  const flags = constants.O_RDWR | constants.O_NOCTTY | O_CLOEXEC
  const master = openSync('/dev/ptmx', flags | constants.O_NONBLOCK)
  systemCall('ioctl', master, TIOCSPTLCK, new Uint8Array(4))
  // Not by name: the path /dev/pts/N depends on the mount namespace.
  const slave = systemCall('ioctl', master, TIOCGPTPEER, flags)
  setUtf8(slave)
  resize(master, size)
  return { master, slave }
}

/** IUTF8 makes backspace erase a whole character. */
function setUtf8(slave: number): void {
  const modes = readTermios(slave)
  if (modes === undefined) return
  const [input = 0] = new Uint32Array(modes.buffer, 0, 1)
  new Uint32Array(modes.buffer, 0, 1)[0] = input | IUTF8
  systemCall('ioctl', slave, TCSETS, modes)
}

/** The kernel sends SIGWINCH to the foreground process group. */
function resize(master: number, { cols, rows }: WindowSize): void {
  const size = new Uint8Array(Uint16Array.of(rows, cols, 0, 0).buffer)
  systemCall('ioctl', master, TIOCSWINSZ, size)
}
