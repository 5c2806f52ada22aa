/** The gate's no: what, why and the fix, in words that an agent can act on. It was recorded before it was thrown. */
import { PenError } from '../../../base/error.ts'

export interface RefusedDetail {
  /** That it is not done. */
  readonly what: string
  readonly why: string
  readonly at: string
  /** A stable word. */
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

/** Allowed, and it did not work: the kernel's word for it, by its name. */
export class NotDone extends PenError {
  readonly errno: string

  constructor(errno: string, detail: { readonly what: string; readonly at: string; readonly hint: string }) {
    super('PATH_REFUSED', detail)
    this.errno = errno
  }
}
