import { errnoOf, PenError } from '../../base/error.ts'
import { printableJson } from '../../base/printable.ts'
import { looksLikeTerminal, type Paint, painted, plain, wantsColour } from '../render/colour.ts'

/** How verbs speak. Text given here is shown as it is: what came from outside goes through `printable()` before. */
export interface Terminal {
  /** One or more lines for stdout. */
  print(text: string): void
  /** One JSON document for stdout. */
  printJson(value: unknown): void
  /** One or more lines for stderr: progress, warnings, errors. */
  note(text: string): void
  readonly paint: Paint
  readonly paintNote: Paint
}

/** The reader of stdout has gone (`pen plan | head -1`): there is nobody left to tell, and nothing went wrong. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

/**
 * Writes straight to the descriptors: all of it has left the process when `print` returns, so an exit can
 * follow at once, and process.stdout (7 ms to load) is never touched.
 */
export function openTerminal(env: Readonly<Record<string, string | undefined>>): Terminal {
  const paintFor = (fd: number): Paint => (wantsColour(env, () => looksLikeTerminal(fd)) ? painted : plain)
  const print = (text: string): void => writeOut(withNewline(text))
  return {
    print,
    printJson: value => print(printableJson(value, 2)),
    note: text => writeNote(withNewline(text)),
    get paint() {
      return paintFor(1)
    },
    get paintNote() {
      return paintFor(2)
    },
  }
}

const withNewline = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`)

function writeOut(text: string): void {
  try {
    writeAll(1, text)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'EPIPE') throw new OutputClosed('stdout is closed')
    throw new PenError('STATE', {
      what: `could not write the output (${errno ?? 'unknown error'})`,
      at: 'stdout',
      hint: 'check where the output goes: the disk may be full',
      cause: error,
    })
  }
}

function writeNote(text: string): void {
  try {
    writeAll(2, text)
  } catch {
    // Nobody reads the notes; the exit code still tells.
  }
}

/** The module is loaded here: what pen starts itself as, an agent or a supervisor, begins without it. */
export function writeAll(fd: number, text: string): void {
  const { writeSync } = process.getBuiltinModule('node:fs')
  const bytes = Buffer.from(text)
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(fd, bytes, done)
    } catch (error) {
      if (errnoOf(error) !== 'EAGAIN') throw error
      // Somebody made the shared descriptor non-blocking and its reader is slow.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
    }
  }
}
