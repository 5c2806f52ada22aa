/**
 * A refusal of the gate: what, why and the fix, in words that an agent can act on. It is recorded before it is thrown.
 */
import { PenError } from '../../../base/error.ts'

export interface RefusedDetail {
  /** What was refused. */
  readonly what: string
  readonly why: string
  readonly at: string
  /** A stable identifier. */
  readonly reason: string
  readonly fix: string
}

export class Refused extends PenError {
  readonly reason: string
  readonly why: string

  constructor({ what, why, at, reason, fix }: RefusedDetail) {
    super('REFUSED', { what: `${what}: ${why}`, at, hint: fix })
    this.reason = reason
    this.why = why
  }
}

/** The action was allowed, but failed. `errno` is the kernel's error by name. */
export class ActionFailed extends PenError {
  readonly errno: string

  constructor(errno: string, detail: { readonly what: string; readonly at: string; readonly hint: string }) {
    super('PATH_REFUSED', detail)
    this.errno = errno
  }
}
