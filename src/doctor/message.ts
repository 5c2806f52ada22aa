import { errnoOf, PenError } from '../base/error.ts'

/** Why something failed, in a few words. */
export function messageOf(error: unknown): string {
  if (error instanceof PenError) return error.message
  const text = error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error)
  return text || errnoOf(error) || 'unknown error'
}

export const hintOf = (error: unknown): string | undefined =>
  error instanceof PenError ? error.hint : undefined
