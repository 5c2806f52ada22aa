/** Failures that a program, or the model behind it, can act on: what happened, whether trying again can help, and who could allow it. */
import { type ErrorCode, PenError, showPlace } from '../base/error.ts'
import { printable } from '../base/printable.ts'

/** `ENDED`: the sandbox is over. `DENIED`: the policy refused it. The others are those of pen's own commands. */
export type SandboxErrorCode = ErrorCode | 'ENDED' | 'DENIED' | 'NOT_FOUND'

export interface SandboxErrorDetail {
  readonly what: string
  readonly at?: string | undefined
  readonly hint?: string | undefined
  readonly permission?: string | undefined
  /** Where this one differs from others of its code. */
  readonly retry?: boolean | undefined
  readonly cause?: unknown
}

/** Of those that can pass by themselves, or after the hint was followed without a change of policy. */
const WORTH_A_RETRY: readonly SandboxErrorCode[] = ['ENDED', 'STATE', 'LIMIT', 'WIRE', 'CONNECT']

export class SandboxError extends Error {
  override readonly name = 'SandboxError'
  readonly code: SandboxErrorCode
  /** What happened, in one sentence. The same as `message`. */
  readonly what: string
  /** Where: a path, a key, a place in a file. */
  readonly at: string | undefined
  /** What can be done now. */
  readonly hint: string | undefined
  /** Whether the same call may succeed later, without anybody's permission. */
  readonly retry: boolean
  /** How the user gives the permission that was missing, on the host: a command, or a sentence. */
  readonly permission: string | undefined

  constructor(code: SandboxErrorCode, detail: SandboxErrorDetail) {
    super(detail.what, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.code = code
    this.what = detail.what
    this.at = detail.at
    this.hint = detail.hint
    this.retry = detail.retry ?? WORTH_A_RETRY.includes(code)
    this.permission = detail.permission
  }

  /** One text that says everything, for a person or a model. Names from a sandbox are escaped in it. */
  explain(): string {
    return [
      `${this.code}: ${printable(this.what, 1000)}`,
      ...(this.at === undefined ? [] : [`at: ${printable(this.at, 1000)}`]),
      ...(this.hint === undefined ? [] : [`hint: ${printable(this.hint, 1000)}`]),
      ...(this.permission === undefined
        ? []
        : [`to allow it, on the host: ${printable(this.permission, 1000)}`]),
      `retry: ${this.retry ? 'may help' : 'does not help'}`,
    ].join('\n')
  }
}

/** Whatever failed, as the one kind of error that the library throws. @internal */
export function asSandboxError(error: unknown): Error {
  if (!(error instanceof PenError)) return error instanceof Error ? error : new Error(String(error))
  const at = error.at === undefined ? undefined : showPlace(error.at)
  return new SandboxError(error.code, { what: error.message, at, hint: error.hint, cause: error })
}

/** @internal */
export const endedError = (cause?: string): SandboxError =>
  new SandboxError('ENDED', {
    what: `the sandbox has ended${cause === undefined ? '' : `: ${cause}`}`,
    hint: 'start another with Sandbox.start(); pen logs --all tells what ended it',
  })
