/** Reads a secret: typed without echo on a terminal, or piped. It is never an argument, which every user could see. */
import { PenError } from '../../base/error.ts'
import { canAsk } from './ask.ts'
import type { Terminal } from './terminal.ts'

const LONGEST = 8192
const [INTERRUPT, END, RETURN, NEWLINE, BACKSPACE, DELETE] = ['\x03', '\x04', '\r', '\n', '\b', '\x7f']

export async function readHidden(question: string, terminal: Terminal): Promise<string> {
  if (!canAsk()) return await readPiped()
  terminal.note(`${question} It is not shown. End with Enter:`)
  let typed = ''
  process.stdin.setRawMode(true)
  try {
    for await (const keys of process.stdin)
      for (const key of String(keys)) {
        if (key === RETURN || key === NEWLINE || key === END) return typed
        if (key === INTERRUPT) throw new PenError('USAGE', { what: 'interrupted: nothing was stored' })
        typed = key === BACKSPACE || key === DELETE ? typed.slice(0, -1) : typed + key
      }
    return typed
  } finally {
    process.stdin.setRawMode(false)
    process.stdin.pause()
  }
}

async function readPiped(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += String(chunk)
    if (text.length > LONGEST) throw new PenError('SECRET', { what: `stdin has more than ${LONGEST} bytes` })
  }
  return text.replace(/\r?\n$/, '')
}
