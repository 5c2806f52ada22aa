/** The user's own terminal: asked, put into raw mode, and given back as it was found. */
import { systemCall } from '../base/kernel/system-call.ts'
import { readTermios } from './termios.ts'

const TCSETS = 0x5402
/** Also throws away what was typed but not read: an answer that the sandbox made the terminal give stays out of the shell. */
const TCSETSF = 0x5404
const TIOCGWINSZ = 0x5413

export function windowSize(fd: number): { cols: number; rows: number } {
  const size = new Uint16Array(4)
  try {
    systemCall('ioctl', fd, TIOCGWINSZ, new Uint8Array(size.buffer))
  } catch {
    return { cols: 80, rows: 24 }
  }
  return { rows: size[0] || 24, cols: size[1] || 80 }
}

/** Every key goes to the sandbox's own terminal, which decides what it means. Returns what undoes it. */
export function makeRaw(fd: number): () => void {
  const before = readTermios(fd)
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
  systemCall('ioctl', fd, TCSETS, raw)
  return () => {
    try {
      systemCall('ioctl', fd, TCSETSF, before)
    } catch {
      // The terminal is gone.
    }
  }
}

/** For a terminal whose output another one will show: what is written comes out as it is. Returns what undoes it, nothing. */
export function disableOutputProcessing(fd: number): () => void {
  const modes = readTermios(fd)
  if (modes !== undefined) {
    const words = new Uint32Array(modes.buffer, 0, 4)
    words[1] = (words[1] ?? 0) & ~0o1 // OPOST
    systemCall('ioctl', fd, TCSETS, modes)
  }
  return () => {}
}

/** Private modes that a full-screen program may leave changed, as they are at a shell's prompt. */
const AT_THE_PROMPT: Readonly<Record<string, 'h' | 'l'>> = {
  ...Object.fromEntries(
    [
      1, 5, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026, 2031, 2048,
    ].map(mode => [mode, 'l' as const]),
  ),
  7: 'h',
  25: 'h',
}

/** Modes of programs that draw: the alternate screen, pasted text as such, the mouse, a hidden cursor. */
const DRAWING: Readonly<Record<string, 'h' | 'l'>> = {
  ...Object.fromEntries(
    [47, 1000, 1002, 1003, 1004, 1006, 1047, 1049, 2004].map(mode => [mode, 'h' as const]),
  ),
  25: 'l',
}

/** Other changes, with what undoes them: attributes, keypad, character set, and the two ways to ask for more keys. */
// biome-ignore-start lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
const CHANGES: readonly (readonly [RegExp, string])[] = [
  [/\x1b\[[0-9;:]*[1-9][0-9;:]*m/, '\x1b[0m'],
  [/\x1b=/, '\x1b>'],
  [/\x1b\(0/, '\x1b(B'],
  [/\x1b\[>[0-9;]*u/, '\x1b[<99u'],
  [/\x1b\[>4;[0-9]+m/, '\x1b[>4m'],
]

/** Remembers what the sandbox's output changed, so that only that is changed back. */
export class SavedModes {
  readonly #modes = new Map<string, string>()
  readonly #changed = new Set<string>()

  /** Whole sequences only: the filter in front cuts none. */
  saw(text: string): void {
    if (!text.includes('\x1b')) return
    for (const [, modes = '', state = ''] of text.matchAll(/\x1b\[\?([0-9;]+)([hl])/g))
      for (const mode of modes.split(';')) this.#modes.set(String(Number(mode)), state)
    for (const [change, undo] of CHANGES) if (change.test(text)) this.#changed.add(undo)
  }

  /** Whether a program has asked for the whole screen, for single keys, the mouse or a hidden cursor: it draws, and knows what is where. */
  get isFullScreen(): boolean {
    return [...this.#modes].some(([mode, state]) => state === DRAWING[mode])
  }

  /** What puts the terminal back. */
  undo(): string {
    const modes = [...this.#modes].filter(([mode, state]) => (AT_THE_PROMPT[mode] ?? state) !== state)
    return [...modes.map(([mode]) => `\x1b[?${mode}${AT_THE_PROMPT[mode]}`), ...this.#changed].join('')
  }
}
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: as above
