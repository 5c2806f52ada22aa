/** A new terminal, as the kernel makes it: two ends of which one is a program's, and the other whoever's shows and types. */
import { constants, openSync } from 'node:fs'
import { systemCall } from '../base/kernel/system-call.ts'
import { readTermios } from './termios.ts'

const TIOCSPTLCK = 0x40045431
const TIOCGPTPEER = 0x5441
const TIOCSWINSZ = 0x5414
const TCSETS = 0x5402
const IUTF8 = 0o40000
const O_CLOEXEC = 0o2000000

export interface WindowSize {
  readonly cols: number
  readonly rows: number
}

/** The descriptor of `master` waits for nobody. */
export function openTerminal(size: WindowSize): { readonly master: number; readonly slave: number } {
  const ours = constants.O_RDWR | constants.O_NOCTTY | O_CLOEXEC
  const master = openSync('/dev/ptmx', ours | constants.O_NONBLOCK)
  systemCall('ioctl', master, TIOCSPTLCK, new Uint8Array(4))
  // Not by its name: which /dev/pts that is found in depends on where we are.
  const slave = systemCall('ioctl', master, TIOCGPTPEER, ours)
  speakUtf8(slave)
  resize(master, size)
  return { master, slave }
}

/** So that a backspace takes a whole character away. */
function speakUtf8(slave: number): void {
  const modes = readTermios(slave)
  if (modes === undefined) return
  const [input = 0] = new Uint32Array(modes.buffer, 0, 1)
  new Uint32Array(modes.buffer, 0, 1)[0] = input | IUTF8
  systemCall('ioctl', slave, TCSETS, modes)
}

/** Whoever leads the terminal's foreground is told by the kernel. */
export function resize(master: number, { cols, rows }: WindowSize): void {
  const size = new Uint8Array(Uint16Array.of(rows, cols, 0, 0).buffer)
  systemCall('ioctl', master, TIOCSWINSZ, size)
}
