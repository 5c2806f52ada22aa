import type { PenError } from '../../src/base/error.ts'

/** Fails unless an error has a hint, visible text, and a position in the input or right after it. */
export function expectPlaceInside(error: PenError, input: Uint8Array): void {
  const { at, hint, message } = error
  if (at === undefined || typeof at === 'string') throw new Error('an error without a position')
  if (hint === undefined || hint === '') throw new Error('an error without a fix')
  if (/[^\p{L}\p{N}\p{P}\p{S}\p{M} ]/u.test(message + hint)) throw new Error('hidden characters in an error')
  if (message.length > 600 || hint.length > 600) throw new Error('an error too long to read')
  const line = Buffer.from(input).toString('utf8').split('\n')[at.line - 1]
  if (line === undefined) throw new Error(`line ${at.line} does not exist`)
  if (at.column < 1 || at.column > [...line].length + 1) throw new Error(`column ${at.column} does not exist`)
}
