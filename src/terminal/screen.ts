/**
 * The terminal on which this process shows a sandbox: at most one. While a full-screen program draws on it, pen prints no lines there,
 * because they would corrupt its picture. A bell is safe.
 */
import { isTerminal, readTermios } from './termios.ts'

export interface Screen {
  /** Whether a program inside reads single keys or draws on the whole screen. */
  isFullScreen(): boolean
  ring(): void
}

let current: Screen | undefined

/** Returns a function that unsets it. */
export function setScreen(next: Screen): () => void {
  current = next
  return () => {
    if (current === next) current = undefined
  }
}

/** The current screen. Without one it is never full-screen, and the bell does nothing. */
export const screen: Screen = {
  isFullScreen: () => current?.isFullScreen() === true,
  ring: () => current?.ring(),
}

const ICANON = 0o2

/** Whether the terminal delivers single keys instead of lines, as for an editor or a shell prompt. */
export function isRaw(fd: number): boolean {
  const termios = readTermios(fd)
  return termios !== undefined && ((new Uint32Array(termios.buffer, 0, 4)[3] ?? 0) & ICANON) === 0
}

/** Rings between two escape sequences of the sandbox: a BEL inside a sequence would end it. */
export class Bell {
  readonly #isAtBoundary: () => boolean
  readonly #write: (bytes: Uint8Array) => void
  #isPending: boolean = false

  constructor(isAtBoundary: () => boolean, write: (bytes: Uint8Array) => void) {
    this.#isAtBoundary = isAtBoundary
    this.#write = write
  }

  ring(): void {
    this.#isPending = true
    this.flush()
  }

  /** Call after each output of the sandbox. */
  flush(): void {
    if (!this.#isPending || !this.#isAtBoundary()) return
    this.#isPending = false
    this.#write(Uint8Array.of(0x07))
  }
}

/** Delay before progress is shown. */
const PATIENCE_MS = 500

/** Shows progress at a terminal after the delay, unless the returned function is called first. */
export function afterPatience(tell: () => void): () => void {
  if (!isTerminal(2)) return () => undefined
  const telling = setTimeout(tell, PATIENCE_MS)
  return () => clearTimeout(telling)
}
