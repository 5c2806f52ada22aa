/** The gate's no: what, why and the cure, in words that an agent can act on. It was recorded before it was thrown. */
import { PenError } from '../base/error.ts'

export interface RefusedDetail {
  readonly what: string
  readonly at: string
  /** A stable word. */
  readonly reason: string
  readonly cure: string
}

export class Refused extends PenError {
  readonly reason: string

  constructor({ what, at, reason, cure }: RefusedDetail) {
    super('REFUSED', { what, at, hint: cure })
    this.reason = reason
  }
}
