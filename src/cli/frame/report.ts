import { ERROR_CODES, type ExitCode, errnoOf, knownError, PenError, showPlace } from '../../base/error.ts'
import { printable, printableJson } from '../../base/printable.ts'
import type { Paint } from '../render/colour.ts'

/** Enough for a sentence with a path. Hostile text cannot flood the terminal. */
const CAP = 2000

export const exitCodeOf = (error: unknown): ExitCode =>
  error instanceof PenError ? error.exitCode : ERROR_CODES.INTERNAL

/** The error as text. Every part is escaped, because file names, config and arguments can be hostile. */
export function reportText(error: unknown, paint: Paint, debug: boolean): string {
  const { code, what, at, hint } = reportOf(error)
  const lines = [`pen: ${paint('red', printable(code))}: ${printable(what, CAP)}`]
  if (at !== null) lines.push(`  at ${printable(at, CAP)}`)
  if (hint !== null) lines.push(`  ${paint('green', 'fix:')} ${printable(hint, CAP)}`)
  if (debug) lines.push(...stackOf(error).map(line => `  ${paint('dim', printable(line))}`))
  return lines.join('\n')
}

/** The error as JSON: one line, always the same keys. */
export const reportJson = (error: unknown): string => printableJson({ error: reportOf(error) })

function reportOf(thrown: unknown) {
  const error = knownError(thrown)
  if (error instanceof PenError) {
    const at = error.at === undefined ? null : showPlace(error.at)
    return { code: error.code, what: error.message, at, hint: error.hint ?? null }
  }
  const what = error instanceof Error ? error.message || error.name : String(error)
  const hint = errnoOf(error)
    ? null
    : 'this is a bug in pen; run again with PEN_DEBUG=1 and report the output'
  return { code: 'INTERNAL', what: what.split('\n', 1)[0] ?? '', at: null, hint }
}

function stackOf(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const lines = (error.stack ?? '').split('\n').map(line => line.trim())
  return error.cause === undefined ? lines : [...lines, 'caused by', ...stackOf(error.cause)]
}
