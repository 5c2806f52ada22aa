import { PenError } from '../../base/error.ts'

/**
 * Refuses arguments that are not UTF-8. The runtime replaces invalid bytes by U+FFFD, which would name another file.
 * The kernel's copy of the arguments shows whether the user really typed U+FFFD.
 */
export function checkArguments(
  argv: readonly string[],
  raw: () => Uint8Array | undefined = rawArguments,
): void {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? ''
    if (word.includes('\0')) throw refused(i, 'contains a NUL byte')
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

const isUtf8 = (bytes: Uint8Array | undefined): boolean =>
  bytes !== undefined && process.getBuiltinModule('node:buffer').isUtf8(bytes)

function refused(index: number, what: string): PenError {
  return new PenError('USAGE', {
    what: `argument ${index + 1} ${what}`,
    hint: 'rename the file, or pass UTF-8 text',
  })
}
