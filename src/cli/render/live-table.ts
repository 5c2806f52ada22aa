/** Redraws lines in place until the user presses q or Ctrl-C. Only for a terminal. */
import { writeSync } from 'node:fs'
import { makeRaw, windowSize } from '../../terminal/host-terminal.ts'

const UP = (lines: number): string => (lines === 0 ? '' : `\u001b[${lines}A`)
const CLEAR_DOWN = '\u001b[J'
const HIDE = '\u001b[?25l'
/** In raw mode Ctrl-C and Ctrl-D arrive as bytes. */
const QUIT_KEYS = ['q', 'Q', '\u0003', '\u0004']
const SHOW = '\u001b[?25h'

export async function showUntilQuit(everyMs: number, read: () => Promise<readonly string[]>): Promise<void> {
  const restore = makeRaw(0)
  const restoreTerminal = (): void => {
    writeSync(1, SHOW)
    restore()
  }
  process.once('exit', restoreTerminal)
  const quit = Promise.withResolvers<void>()
  void quitKey().then(quit.resolve, quit.resolve)
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.once(signal, quit.resolve)
  let hasQuit: boolean = false
  void quit.promise.then(() => {
    hasQuit = true
  })
  try {
    writeSync(1, HIDE)
    for (let shown = 0; !hasQuit; ) {
      const { cols, rows } = windowSize(1)
      const lines = (await read()).slice(0, rows - 1).map(line => line.slice(0, cols))
      writeSync(1, `${UP(shown)}\r${CLEAR_DOWN}${lines.map(line => `${line}\r\n`).join('')}`)
      shown = lines.length
      await Promise.race([quit.promise, new Promise(resolve => setTimeout(resolve, everyMs))])
    }
  } finally {
    process.off('exit', restoreTerminal)
    restoreTerminal()
  }
}

async function quitKey(): Promise<void> {
  for await (const keys of process.stdin) if (QUIT_KEYS.some(key => String(keys).includes(key))) return
}
