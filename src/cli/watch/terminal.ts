/** Full-screen mode of the user's terminal. Restores the terminal on every exit. */
import { writeAll } from '../../base/write-all.ts'
import { makeRaw, windowSize } from '../../terminal/host-terminal.ts'
import type { Answer } from './answer.ts'

export type Key = 'up' | 'down' | 'quit' | Answer

interface ScreenEvents {
  key(key: Key): void
  /** The terminal was closed, or a signal asks pen to end. */
  end(): void
  resized(): void
}

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
/** Clears the screen first: after a resize, tmux would otherwise leave parts of it in the shell's lines. */
const LEAVE = '\x1b[0m\x1b[2J\x1b[?7h\x1b[?25h\x1b[?1049l'
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const

const KEYS: ReadonlyMap<string, Key> = new Map([
  ['\x1b[A', 'up'],
  ['\x1bOA', 'up'],
  ['k', 'up'],
  ['\x1b[B', 'down'],
  ['\x1bOB', 'down'],
  ['j', 'down'],
  ['q', 'quit'],
  ['\x03', 'quit'],
  ['\x04', 'quit'],
  ['o', 'once'],
  ['s', 'session'],
  ['a', 'always'],
  ['d', 'not now'],
  ['n', 'never'],
])

export class WatchTerminal {
  readonly #undo: (() => void)[] = []
  #isOpen: boolean = true

  constructor(events: ScreenEvents) {
    this.#undo.push(makeRaw(0))
    write(ENTER)
    this.#undo.push(() => write(LEAVE))
    const close = () => this.close()
    process.once('exit', close)
    this.#undo.push(() => process.off('exit', close))
    for (const signal of ENDING) this.#on(signal, () => events.end())
    this.#on('SIGWINCH', () => events.resized())
    // Pasted text is ignored: each read must hold exactly one key.
    const onData = (bytes: Buffer) => {
      const key = KEYS.get(bytes.toString('latin1'))
      if (key !== undefined) events.key(key)
    }
    const ended = () => events.end()
    process.stdin.on('data', onData).on('end', ended).on('error', ended).on('close', ended)
    this.#undo.push(() => {
      process.stdin.off('data', onData).off('end', ended).off('error', ended).off('close', ended).pause()
    })
  }

  get size(): { readonly columns: number; readonly rows: number } {
    const { cols, rows } = windowSize(1)
    return { columns: cols, rows }
  }

  draw(lines: readonly string[]): void {
    if (this.#isOpen) write(`\x1b[H${lines.map(line => `${line}\x1b[0m\x1b[K`).join('\r\n')}\x1b[J`)
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    for (const undo of this.#undo.reverse()) undo()
  }

  #on(signal: NodeJS.Signals, act: () => void): void {
    process.on(signal, act)
    this.#undo.push(() => process.off(signal, act))
  }
}

function write(text: string): void {
  try {
    writeAll(1, text)
  } catch {
    // The terminal was closed. Stdin reports that.
  }
}
