import { PenError } from '../../base/error.ts'

/**
 * Bytes that are no text reach us as U+FFFD. Passing that on would name another file than was typed, so it is
 * refused; a U+FFFD that was really typed is told apart by the kernel's own copy of the arguments.
 */
export function checkArguments(
  argv: readonly string[],
  raw: () => Uint8Array | undefined = rawArguments,
): void {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? ''
    if (word.includes('\0')) throw refused(i, 'has a NUL byte in it')
    if (!word.isWellFormed()) throw refused(i, 'is not valid Unicode')
    if (word.includes('\ufffd') && !isUtf8(raw())) throw refused(i, 'is not valid UTF-8')
  }
}

function rawArguments(): Uint8Array | undefined {
  try {
    return process.getBuiltinModule('node:fs').readFileSync('/proc/self/cmdline')
  } catch {
    return undefined
  }
}

function isUtf8(bytes: Uint8Array | undefined): boolean {
  if (bytes === undefined) return false
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

function refused(index: number, what: string): PenError {
  return new PenError('USAGE', {
    what: `argument ${index + 1} ${what}`,
    hint: 'rename the file, or give the text in UTF-8',
  })
}
