/** What the quarantine found at protected places, and did with it. */
export interface Moved {
  readonly kind: 'moved'
  /** Where it was: the protected place, or a link on the way to it. */
  readonly path: string
  /** Where it is now. */
  readonly to: string
  readonly what: string
  /** What was put back in its place: the content or link that stood there before. */
  readonly restored: boolean
  /** Something was held there, and the host removed or replaced it. */
  readonly mayBeUsers: boolean
}

/** A held file was replaced or removed on the host, which ends its mount inside the sandbox. */
export interface Lost {
  readonly kind: 'lost'
  readonly path: string
  readonly gone: boolean
}

/** An entry at a protected place cannot be moved, or pen could not look at the place (unseen). */
export interface Stuck {
  readonly kind: 'stuck' | 'unseen'
  readonly path: string
  readonly why: string
  /** It was renamed in its own directory, to a name that no program reads. */
  readonly aside?: string
  /** Something was held there, and the host removed or replaced it. */
  readonly mayBeUsers?: boolean
}

/** A link from a denied name was removed and has been restored: without it the next run would not deny its target. */
export interface Back {
  readonly kind: 'back'
  readonly path: string
}

export type QuarantineEvent = Moved | Lost | Stuck | Back

/** Something of the sandbox is still in the project, or may be. */
export const isUndone = (event: QuarantineEvent): boolean => event.kind === 'stuck' || event.kind === 'unseen'
