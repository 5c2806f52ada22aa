/**
 * The terminal on which this process shows a sandbox: one at most. While a program inside draws on it, pen writes no line there: the line
 * would stand in the midst of that program's picture. A bell draws nothing.
 */
import { readTermios } from './termios.ts'

export interface Screen {
  /** A program inside reads keys one by one, or draws on the whole screen. */
  isFullScreen(): boolean
  ring(): void
}

let current: Screen | undefined

/** Returns what ends it. */
export function setScreen(screen: Screen): () => void {
  current = screen
  return () => {
    if (current === screen) current = undefined
  }
}

/** What is shown now; a screen that nobody owns where nothing is. */
export const screen: Screen = {
  isFullScreen: () => current?.isFullScreen() === true,
  ring: () => current?.ring(),
}

const ICANON = 0o2

/** Whether whoever reads this terminal wants single keys instead of lines: a full-screen program, or an editor of command lines. */
export function isRaw(fd: number): boolean {
  const modes = readTermios(fd)
  return modes !== undefined && ((new Uint32Array(modes.buffer, 0, 4)[3] ?? 0) & ICANON) === 0
}

/** A bell between two sequences of the sandbox's: in the midst of one it would end it. */
export class Bell {
  readonly #isBetween: () => boolean
  readonly #write: (bytes: Uint8Array) => void
  #wanted: boolean = false

  constructor(isBetween: () => boolean, write: (bytes: Uint8Array) => void) {
    this.#isBetween = isBetween
    this.#write = write
  }

  ring(): void {
    this.#wanted = true
    this.now()
  }

  /** After each output of the sandbox's. */
  now(): void {
    if (!this.#wanted || !this.#isBetween()) return
    this.#wanted = false
    this.#write(Uint8Array.of(0x07))
  }
}
