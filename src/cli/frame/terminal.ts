import { errnoOf, errnoText, PenError } from '../../base/error.ts'
import { printableJson } from '../../base/printable.ts'
import { writeAll } from '../../base/write-all.ts'
import { looksLikeTerminal, type Paint, painted, plain, wantsColour } from '../render/colour.ts'

/** The output of verbs. Text is printed unchanged: callers pass untrusted text through `printable()` first. */
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

/** The reader of stdout has exited, as in `pen plan | head -1`. This is no failure. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

/**
 * Writes directly to the descriptors. All bytes are written when `print` returns, so pen can exit at once.
 * `process.stdout` takes 7 ms to load and is not used.
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

/** Writes to stdout. */
export function writeOut(data: string | Uint8Array): void {
  try {
    writeAll(1, data)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'EPIPE') throw new OutputClosed('stdout is closed')
    throw new PenError('STATE', {
      what: `could not write to stdout (${errnoText(error)})`,
      hint: 'check that the disk is not full',
      cause: error,
    })
  }
}

function writeNote(text: string): void {
  try {
    writeAll(2, text)
  } catch {
    // Stderr is closed. The exit code still reports the result.
  }
}
