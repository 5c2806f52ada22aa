/** What the doctor says of one thing. */

/** `fails`: `pen run` would not work. `weak`: it works, with less than it could have. */
export type Status = 'ok' | 'weak' | 'fails'

export interface Finding {
  /** Stable, for programs: `user-namespaces`, `tool-git`. */
  readonly id: string
  readonly status: Status
  /** What was tried, and what came of it. May hold hostile text: the verb escapes it. */
  readonly what: string
  readonly why?: string | undefined
  /** What to do about it on this distribution. */
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

/** The last line of what a tool said, which is where most of them put the reason. */
export const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.trim() ?? ''
