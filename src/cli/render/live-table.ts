/** Lines that are shown anew in their place until the person leaves, with q or Ctrl-C. Only for a terminal. */
import { writeSync } from 'node:fs'
import { makeRaw, windowSize } from '../../terminal/host-terminal.ts'

const UP = (lines: number): string => (lines === 0 ? '' : `\u001b[${lines}A`)
const CLEAR_DOWN = '\u001b[J'
const HIDE = '\u001b[?25l'
/** Ctrl-C and Ctrl-D as a raw terminal tells them. */
const LEAVING = ['q', 'Q', '\u0003', '\u0004']
const SHOW = '\u001b[?25h'

export async function showUntilLeft(everyMs: number, read: () => Promise<readonly string[]>): Promise<void> {
  const restore = makeRaw(0)
  const giveBack = (): void => {
    writeSync(1, SHOW)
    restore()
  }
  process.once('exit', giveBack)
  const left = Promise.withResolvers<void>()
  void leaving().then(left.resolve, left.resolve)
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.once(signal, left.resolve)
  let isLeft: boolean = false
  void left.promise.then(() => {
    isLeft = true
  })
  try {
    writeSync(1, HIDE)
    for (let shown = 0; !isLeft; ) {
      const { cols, rows } = windowSize(1)
      const lines = (await read()).slice(0, rows - 1).map(line => line.slice(0, cols))
      writeSync(1, `${UP(shown)}\r${CLEAR_DOWN}${lines.map(line => `${line}\r\n`).join('')}`)
      shown = lines.length
      await Promise.race([left.promise, new Promise(resolve => setTimeout(resolve, everyMs))])
    }
  } finally {
    process.off('exit', giveBack)
    giveBack()
  }
}

/** Resolves at the first key that means it; in raw mode Ctrl-C is one too. */
async function leaving(): Promise<void> {
  for await (const keys of process.stdin) if (LEAVING.some(key => String(keys).includes(key))) return
}
