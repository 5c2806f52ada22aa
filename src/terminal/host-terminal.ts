/** The user's terminal: its size, raw mode, and what a sandbox's output changed on it. */
import { systemCall } from '../base/kernel/system-call.ts'
import { readTermios } from './termios.ts'

const TCSETS = 0x5402
/** Also discards unread input: an answer that the sandbox made the terminal type must not reach the shell. */
const TCSETSF = 0x5404
const TIOCGWINSZ = 0x5413
const TIOCGPGRP = 0x540f

/** A process gets no signal when it moves to the foreground, so pen polls. */
const POLL_MS = 150

export interface WindowSize {
  readonly cols: number
  readonly rows: number
}

export function windowSize(fd: number): WindowSize {
  const size = new Uint16Array(4)
  try {
    systemCall('ioctl', fd, TIOCGWINSZ, new Uint8Array(size.buffer))
  } catch {
    return { cols: 80, rows: 24 }
  }
  return { rows: size[0] || 24, cols: size[1] || 80 }
}

/** Raw mode: every key goes to the sandbox's pty. Returns a function that restores the old settings. */
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
      // The terminal has gone.
    }
  }
}

/**
 * Makes the terminal raw now or when pen moves to the foreground. `onTaken` then reads its keys. Returns a function that restores it.
 * A background job may print. If it changes modes or reads keys, the kernel stops it, and the command with it.
 */
export function takeTerminal(fd: number, onTaken: () => void): () => void {
  let restore = (): void => undefined
  let timer: ReturnType<typeof setInterval> | undefined
  const take = (): void => {
    if (!isInForeground(fd)) return
    clearInterval(timer)
    restore = makeRaw(fd)
    onTaken()
  }
  timer = setInterval(take, POLL_MS)
  take()
  return () => {
    clearInterval(timer)
    restore()
  }
}

/** Also true for a terminal that is not our controlling terminal: the kernel stops no job for it. */
function isInForeground(fd: number): boolean {
  const group = new Int32Array(1)
  try {
    systemCall('ioctl', fd, TIOCGPGRP, new Uint8Array(group.buffer))
  } catch {
    return true
  }
  return group[0] === systemCall('getpgid', 0)
}

/** Turns off OPOST on a pty whose output another terminal shows, so that line ends are converted once. */
export function disableOutputProcessing(fd: number): void {
  const modes = readTermios(fd)
  if (modes !== undefined) {
    const words = new Uint32Array(modes.buffer, 0, 4)
    words[1] = (words[1] ?? 0) & ~0o1 // OPOST
    systemCall('ioctl', fd, TCSETS, modes)
  }
}

/** Private modes that a full-screen program may leave changed, with their values at a shell prompt. */
const PROMPT_MODES: Readonly<Record<string, 'h' | 'l'>> = {
  ...Object.fromEntries(
    [
      1, 5, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026, 2031, 2048,
    ].map(mode => [mode, 'l' as const]),
  ),
  7: 'h',
  25: 'h',
}

/** Modes that full-screen programs set: alternate screen, bracketed paste, mouse, hidden cursor. */
const FULL_SCREEN: Readonly<Record<string, 'h' | 'l'>> = {
  ...Object.fromEntries(
    [47, 1000, 1002, 1003, 1004, 1006, 1047, 1049, 2004].map(mode => [mode, 'h' as const]),
  ),
  25: 'l',
}

/** Other changes and the sequences that undo them: attributes, keypad, character set, two extended key protocols. */
// biome-ignore-start lint/suspicious/noControlCharactersInRegex: the patterns match escape sequences
const CHANGES: readonly (readonly [RegExp, string])[] = [
  [/\x1b\[[0-9;:]*[1-9][0-9;:]*m/, '\x1b[0m'],
  [/\x1b=/, '\x1b>'],
  [/\x1b\(0/, '\x1b(B'],
  [/\x1b\[>[0-9;]*u/, '\x1b[<99u'],
  [/\x1b\[>4;[0-9]+m/, '\x1b[>4m'],
]

/** Tracks which modes the sandbox's output changed, and restores exactly those. */
export class SavedModes {
  readonly #modes = new Map<string, string>()
  readonly #changed = new Set<string>()

  /** The filter before it passes only complete sequences. */
  observe(text: string): void {
    if (!text.includes('\x1b')) return
    for (const [, modes = '', state = ''] of text.matchAll(/\x1b\[\?([0-9;]+)([hl])/g))
      for (const mode of modes.split(';')) this.#modes.set(String(Number(mode)), state)
    for (const [change, undo] of CHANGES) if (change.test(text)) this.#changed.add(undo)
  }

  /** Whether a full-screen program draws. */
  get isFullScreen(): boolean {
    return [...this.#modes].some(([mode, state]) => state === FULL_SCREEN[mode])
  }

  /** The escape sequences that restore the terminal. */
  undo(): string {
    const modes = [...this.#modes].filter(([mode, state]) => (PROMPT_MODES[mode] ?? state) !== state)
    return [...modes.map(([mode]) => `\x1b[?${mode}${PROMPT_MODES[mode]}`), ...this.#changed].join('')
  }
}

/** Tracks whether the output ended inside a line, as after a spinner, a prompt or ^C. */
export class LineState {
  #isMidLine: boolean = false
  #wantsNewLine: boolean = false

  /** The filter before it passes only complete sequences. */
  observe(text: string): void {
    const shown = text.replace(/\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|[ -/]*[0-~])/g, '')
    if (shown !== '') this.#isMidLine = !/[\r\n]$/.test(shown)
  }

  requestNewLine(): void {
    this.#wantsNewLine = true
  }

  /** The bytes that end the line, if a new one was requested and is needed. */
  ending(): string {
    return this.#wantsNewLine && this.#isMidLine ? '\r\n' : ''
  }
}
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: as above
