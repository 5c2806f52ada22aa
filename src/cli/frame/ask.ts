import { readSync } from 'node:fs'
import { errnoOf, PenError } from '../../base/error.ts'
import type { Terminal } from './terminal.ts'

/** Whether a person can be asked: both the question and the answer need a terminal, so that `yes |` answers nothing. */
export async function canAsk(): Promise<boolean> {
  const { isatty } = await import('node:tty')
  return isatty(0) && isatty(2)
}

/** The whole word, so that a key typed too early agrees to nothing. Anything else, and the end of input, is no. */
export function agrees(question: string, terminal: Terminal): boolean {
  terminal.note(`${question} Type "yes" to agree:`)
  return readLine().trim() === 'yes'
}

/** For a verb that removes, and has --yes for where there is nobody to ask. */
export async function agreesToRemove(question: string, verb: string, terminal: Terminal): Promise<boolean> {
  if (!(await canAsk()))
    throw new PenError('USAGE', {
      what: 'there is nobody to ask: this is no terminal',
      at: `pen ${verb}`,
      hint: `pen ${verb} --yes removes without asking`,
    })
  const agreed = agrees(question, terminal)
  if (!agreed) terminal.note('nothing was removed')
  return agreed
}

const LONGEST = 4096

/** One line as the terminal hands it out. What is typed after it is left for whoever reads next. */
function readLine(): string {
  const bytes: number[] = []
  const one = Buffer.alloc(1)
  while (bytes.length < LONGEST) {
    try {
      if (readSync(0, one, 0, 1, null) === 0 || one[0] === 0x0a) break
      bytes.push(one[0] ?? 0)
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'EAGAIN') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
      else if (errno === 'EOF' || errno === 'EIO') break
      else throw error
    }
  }
  return Buffer.from(bytes).toString('utf8')
}
