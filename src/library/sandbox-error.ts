/** Errors that a program or a model can act on: what happened, whether a retry can help, and which command allows it. */
import { type ErrorCode, PenError, showPlace } from '../base/error.ts'
import { printable } from '../base/printable.ts'

/** `ENDED`: the sandbox has ended. `DENIED`: the policy refused it. The others are the codes of pen's commands. */
export type SandboxErrorCode = ErrorCode | 'ENDED' | 'DENIED' | 'NOT_FOUND'

export interface SandboxErrorDetail {
  readonly what: string
  readonly at?: string | undefined
  readonly hint?: string | undefined
  readonly permission?: string | undefined
  /** Overrides the default of the code. */
  readonly retry?: boolean | undefined
  readonly cause?: unknown
}

/** Errors that can pass without a change of policy. */
const RETRYABLE: readonly SandboxErrorCode[] = ['ENDED', 'STATE', 'LIMIT', 'WIRE', 'CONNECT']

export class SandboxError extends Error {
  override readonly name = 'SandboxError'
  readonly code: SandboxErrorCode
  /** What happened, in one sentence. Equal to `message`. */
  readonly what: string
  /** Where: a path, a key, or a position in a file. */
  readonly at: string | undefined
  /** What to do about it. */
  readonly hint: string | undefined
  /** Whether the same call may succeed later without a new permission. */
  readonly retry: boolean
  /** How the user grants the missing permission on the host: a command or a sentence. */
  readonly permission: string | undefined

  constructor(code: SandboxErrorCode, detail: SandboxErrorDetail) {
    super(detail.what, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.code = code
    this.what = detail.what
    this.at = detail.at
    this.hint = detail.hint
    this.retry = detail.retry ?? RETRYABLE.includes(code)
    this.permission = detail.permission
  }

  /** The whole error as one text, for a person or a model. Names from a sandbox are escaped. */
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

/** Converts a PenError to a SandboxError. @internal */
export function asSandboxError(error: unknown): Error {
  if (!(error instanceof PenError)) return error instanceof Error ? error : new Error(String(error))
  const at = error.at === undefined ? undefined : showPlace(error.at)
  return new SandboxError(error.code, { what: error.message, at, hint: error.hint, cause: error })
}

/** @internal */
export const endedError = (cause?: string): SandboxError =>
  new SandboxError('ENDED', {
    what: `the sandbox has ended${cause === undefined ? '' : `: ${cause}`}`,
    hint: 'start another with Sandbox.start(); pen logs --all shows what ended it',
  })
