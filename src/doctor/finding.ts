/** The result of one check. */
import { errnoOf, PenError } from '../base/error.ts'

/** `fails`: `pen run` does not work. `weak`: it works with reduced protection. */
export type Status = 'ok' | 'weak' | 'fails'

export interface Finding {
  /** Stable, for programs: `user-namespaces`, `tool-git`. */
  readonly id: string
  readonly status: Status
  /** What was checked, and the result. Can contain hostile text: the verb escapes it. */
  readonly what: string
  readonly why?: string | undefined
  /** The fix for this distribution. */
  readonly fix?: string | undefined
}

export const ok = (id: string, what: string, why?: string): Finding => ({ id, status: 'ok', what, why })

export const weak = (id: string, what: string, why?: string, fix?: string): Finding => ({
  id,
  status: 'weak',
  what,
  why,
  fix,
})

export const fails = (id: string, what: string, why?: string, fix?: string): Finding => ({
  id,
  status: 'fails',
  what,
  why,
  fix,
})

/** The last line of a tool's output, where most tools print the reason. */
export const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.trim() ?? ''

/** The reason of a failure in one line. */
export function messageOf(error: unknown): string {
  if (error instanceof PenError) return error.message
  const text = error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error)
  return text || errnoOf(error) || 'unknown error'
}

export const hintOf = (error: unknown): string | undefined =>
  error instanceof PenError ? error.hint : undefined
