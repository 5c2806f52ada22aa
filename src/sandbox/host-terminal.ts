/** The user's own terminal: asked, put into raw mode, and given back as it was found. */
import { writeSync } from 'node:fs'
import { systemCall } from '../backend/process/libc.ts'

const IOCTL = process.arch === 'arm64' ? 29 : 16
const TCGETS = 0x5401
const TCSETS = 0x5402
/** Also throws away what was typed but not read: an answer that the sandbox made the terminal give stays out of the shell. */
const TCSETSF = 0x5404
const TIOCGWINSZ = 0x5413

/** struct termios of the kernel: four words of flags, the line discipline and 19 control characters. */
type Modes = Uint8Array

function getModes(fd: number): Modes | undefined {
  const modes = new Uint8Array(64)
  try {
    systemCall('ioctl', IOCTL, fd, TCGETS, modes)
    return modes
  } catch {
    return undefined
  }
}

export const isTerminal = (fd: number): boolean => getModes(fd) !== undefined

export function windowSize(fd: number): { cols: number; rows: number } {
  const size = new Uint16Array(4)
  try {
    systemCall('ioctl', IOCTL, fd, TIOCGWINSZ, new Uint8Array(size.buffer))
  } catch {
    return { cols: 80, rows: 24 }
  }
  return { rows: size[0] || 24, cols: size[1] || 80 }
}

/** Every key goes to the sandbox's own terminal, which decides what it means. Returns what undoes it. */
export function makeRaw(fd: number): () => void {
  const before = getModes(fd)
  if (before === undefined) return () => {}
  const raw = before.slice()
  const words = new Uint32Array(raw.buffer, 0, 4)
  const clear = (word: number, bits: number) => {
    words[word] = (words[word] ?? 0) & ~bits
  }
  clear(0, 0o2755) // IGNBRK BRKINT PARMRK ISTRIP INLCR IGNCR ICRNL IXON, with INPCK
  clear(1, 0o1) // OPOST
  clear(2, 0o460) // CSIZE PARENB
  words[2] = (words[2] ?? 0) | 0o60 // CS8
  clear(3, 0o100113) // ISIG ICANON ECHO ECHONL IEXTEN
  systemCall('ioctl', IOCTL, fd, TCSETS, raw)
  return () => {
    try {
      systemCall('ioctl', IOCTL, fd, TCSETSF, before)
    } catch {
      // The terminal is gone.
    }
  }
}

/** Modes that a full-screen program may have left on: alternate screen, mouse, paste and focus reports, hidden cursor, colours. */
const LEFT_ON =
  '\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[0m'
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
const TURNED_ON = /\x1b\[\?(?:1049|47|1047|1000|1002|1003|1006|1004|2004|25)[hl]/

/** Remembers whether such a mode was ever touched: only then is anything sent. */
export class ModeKeeper {
  #touched: boolean = false

  saw(text: string): void {
    if (!this.#touched && TURNED_ON.test(text)) this.#touched = true
  }

  restore(fd: number): void {
    if (!this.#touched) return
    try {
      writeSync(fd, LEFT_ON)
    } catch {
      // The terminal is gone.
    }
  }
}
