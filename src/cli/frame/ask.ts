import { readSync } from 'node:fs'
import { errnoOf, PenError } from '../../base/error.ts'
import { isTerminal } from '../../terminal/termios.ts'
import { defineFlags } from './flag-spec.ts'
import type { Terminal } from './terminal.ts'

/** Whether pen can ask the user. Question and answer need a terminal, so `yes | pen rm` confirms nothing. */
export const canAsk = (): boolean => isTerminal(0) && isTerminal(2)

/** Only the whole word confirms, so a key typed too early does not. Anything else, and end of input, means no. */
export function confirm(question: string, terminal: Terminal): boolean {
  terminal.note(`${question} Type "yes" to confirm:`)
  return readLine().trim() === 'yes'
}

/** The first letter of the answer, or undefined when it is none of `letters`, and at the end of input. */
export function askLetter(question: string, letters: string, terminal: Terminal): string | undefined {
  terminal.note(`${question} [${[...letters].join('/')}]`)
  const [letter = ''] = readLine().trim().toLowerCase()
  return letters.includes(letter) && letter !== '' ? letter : undefined
}

/** For verbs that remove something and have --yes. */
export function confirmRemoval(question: string, verb: string, terminal: Terminal): boolean {
  if (!canAsk())
    throw new PenError('USAGE', {
      what: `pen ${verb} asks for confirmation, and stdin or stderr is not a terminal`,
      hint: `pen ${verb} --yes`,
    })
  const confirmed = confirm(question, terminal)
  if (!confirmed) terminal.note('nothing was removed')
  return confirmed
}

/** Flags to confirm without a terminal. The digest proves that the user saw what `shownBy` printed. */
export const confirmationFlags = (shownBy: string) =>
  defineFlags({
    yes: { kind: 'boolean', about: 'do not ask; needs --expect' },
    expect: { kind: 'string', value: 'sha256:…', about: `the digest that ${shownBy} printed` },
  })

export interface Confirmation {
  readonly yes: boolean
  readonly expect: string | undefined
}

/** Asks about what was shown. Returns why nothing is done, or undefined if the user confirms. */
export function askAbout(
  question: string,
  { done, command, digest, json }: { done: string; command: string; digest: string; json: boolean },
  terminal: Terminal,
): string | undefined {
  if (json || !canAsk())
    return `not ${done}: no terminal to ask on; read it, then fix: ${command} --yes --expect ${digest}`
  return confirm(question, terminal) ? undefined : `not ${done}`
}

export function expectedDigest(
  { yes, expect }: Confirmation,
  verb: string,
  shownBy: string,
): string | undefined {
  if (yes !== (expect !== undefined))
    throw new PenError('USAGE', {
      what: yes ? '--yes needs --expect' : '--expect needs --yes',
      at: verb,
      hint: `${verb} --yes --expect sha256:…, with the digest that ${shownBy} printed`,
    })
  if (expect !== undefined && !/^sha256:[0-9a-f]{64}$/.test(expect))
    throw new PenError('USAGE', {
      what: 'not a digest',
      at: '--expect',
      hint: `copy the digest that ${shownBy} printed: "sha256:" and 64 digits`,
    })
  return expect
}

const LONGEST = 4096

/** One read of a terminal returns one line. Later input stays for the next reader. */
function readLine(): string {
  const line = Buffer.alloc(LONGEST)
  for (;;) {
    try {
      return line.toString('utf8', 0, readSync(0, line))
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'EOF' || errno === 'EIO') return ''
      if (errno !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    }
  }
}
