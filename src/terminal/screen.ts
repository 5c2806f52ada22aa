/**
 * The terminal on which this process shows a sandbox: at most one. While a full-screen program draws on it, pen prints no lines there,
 * because they would corrupt its picture. A bell is safe.
 */
import { TerminalFilter } from './filter.ts'
import { LineState, SavedModes, takeTerminal, type WindowSize, windowSize } from './host-terminal.ts'
import { type NonblockingWriter, writerTo } from './nonblocking-writer.ts'
import { isTerminal } from './termios.ts'

export interface Screen {
  /** Whether a program inside reads single keys or draws on the whole screen. */
  isFullScreen(): boolean
  ring(): void
}

let current: Screen | undefined

/** The current screen. Without one it is never full-screen, and the bell does nothing. */
export const screen: Screen = {
  isFullScreen: () => current?.isFullScreen() === true,
  ring: () => current?.ring(),
}

/** The program inside, as the screen needs it. */
interface Inside {
  resize(size: WindowSize): void
  /** Called when pen may read the keys of the user's terminal, which is raw from then on. Absent when stdin is not one. */
  readonly relayKeys: (() => void) | undefined
  /** Whether it reads single keys, where that can be seen. */
  isRaw?(): boolean
}

/** Shows what a sandbox prints. It is hostile: it passes the filter, and terminal modes that it changed are restored at the end. */
export class SandboxScreen implements Screen {
  readonly #terminal: number | undefined
  readonly #filter: TerminalFilter | undefined
  readonly #writer: NonblockingWriter
  readonly #modes = new SavedModes()
  readonly #line = new LineState()
  #inside: Inside | undefined
  #restore: () => void = () => undefined
  #isBellPending: boolean = false

  /** `terminal` is the user's terminal. Without one, the bytes pass unchanged. */
  constructor(output: number, terminal: number | undefined) {
    this.#terminal = terminal
    this.#filter = terminal === undefined ? undefined : new TerminalFilter()
    this.#writer = writerTo(output)
  }

  get size(): WindowSize {
    return windowSize(this.#terminal ?? 1)
  }

  begin(inside: Inside): void {
    this.#inside = inside
    current = this
    if (inside.relayKeys !== undefined) this.#restore = takeTerminal(0, inside.relayKeys)
    process.on('SIGWINCH', this.#onResize)
    // Also when pen crashes: the sandbox may have found a bug.
    process.once('exit', this.#onExit)
  }

  show(bytes: Uint8Array): undefined | Promise<void> {
    const filtered = this.#filter?.push(bytes) ?? bytes
    if (this.#filter !== undefined) {
      const text = Buffer.from(filtered).toString('latin1')
      this.#modes.observe(text)
      this.#line.observe(text)
    }
    const written = this.#writer.write(filtered)
    this.#flushBell()
    return written
  }

  isFullScreen(): boolean {
    return this.#inside?.isRaw?.() === true || this.#modes.isFullScreen
  }

  ring(): void {
    this.#isBellPending = true
    this.#flushBell()
  }

  /** Makes `end` finish an unfinished line, so that pen's messages start on a new one. */
  startNewLine(): void {
    this.#line.requestNewLine()
  }

  /** Restores the user's terminal. `showing` ends when all output was passed to `show`. */
  async end(showing?: Promise<void>): Promise<void> {
    process.off('SIGWINCH', this.#onResize)
    if (current === this) current = undefined
    await this.#writer.finish(showing)
    const open = this.#filter?.end() ?? new Uint8Array()
    const last = Buffer.concat([open, Buffer.from(this.#modes.undo() + this.#line.ending())])
    await this.#writer.finish(this.#writer.write(last))
    process.off('exit', this.#onExit)
    this.#restore()
    this.#writer.close()
  }

  readonly #onResize = (): void => this.#inside?.resize(this.size)

  readonly #onExit = (): void => {
    void this.#writer.write(Buffer.from(this.#modes.undo()))
    this.#restore()
  }

  /** Rings between two escape sequences of the sandbox: a BEL inside a sequence would end it. */
  #flushBell(): void {
    if (!this.#isBellPending || this.#filter?.isAtBoundary !== true) return
    this.#isBellPending = false
    void this.#writer.write(Uint8Array.of(0x07))
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
