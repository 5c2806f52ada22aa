/** Why the broker refuses or ends a request. */
import { errnoOf } from '../base/error.ts'
import type { GrantDenial } from '../policy/files/decide-grant.ts'

/** The broker's own reasons, beside `GrantDenial`. The audit and the client see them. */
const REFUSALS = {
  'bad-path': 'a path must be absolute, without empty, "." or ".." components and control characters',
  link: 'the path is or contains a symbolic link, and pen follows none',
  outside: 'another file system is mounted there, which needs its own grant',
  'not-regular': 'it is neither a file nor a directory',
  'hard-link': 'the file has a hard link, which would keep the old content',
  replaced: 'the granted directory was replaced after the grant',
  directory: 'it is a directory',
  'not-directory': 'it is not a directory',
  absent: 'it does not exist',
  changed: 'it changed during the transfer',
  'too-large': 'it exceeds the limit for written bytes',
  busy: 'too many requests are active',
  stalled: 'the transfer made no progress for too long',
  revoked: 'its grant was revoked',
  expired: 'its grant has expired',
  ended: 'the sandbox has ended',
  client: 'the client closed the request',
  unrecorded: 'the audit cannot be written, and pen does nothing without a record',
  failed: 'the host reported an error',
} as const

export type RefusalReason = keyof typeof REFUSALS

/** Reasons that count as a denial, beside those of the policy: a hostile sandbox can cause them. */
const DENIALS: ReadonlySet<string> = new Set<RefusalReason>([
  'expired',
  'bad-path',
  'link',
  'outside',
  'not-regular',
  'hard-link',
  'replaced',
])

interface RefusalDetails {
  readonly why?: string
  readonly fix?: string | undefined
  /** Only for the audit. */
  readonly rule?: string | undefined
  readonly from?: string | undefined
}

export class Refusal extends Error {
  readonly reason: RefusalReason | GrantDenial
  readonly fix: string | undefined
  readonly rule: string | undefined
  readonly from: string | undefined

  constructor(reason: RefusalReason | GrantDenial, { why, fix, rule, from }: RefusalDetails = {}) {
    super(why ?? (reason in REFUSALS ? REFUSALS[reason as RefusalReason] : reason))
    this.reason = reason
    this.fix = fix
    this.rule = rule
    this.from = from
  }

  /** A denial, not a missing file or an error of the host. */
  get isDenial(): boolean {
    return !(this.reason in REFUSALS) || DENIALS.has(this.reason)
  }
}

const BY_ERRNO: Readonly<Record<string, RefusalReason>> = {
  ENOENT: 'absent',
  ELOOP: 'link',
  EXDEV: 'outside',
  ENOTDIR: 'not-directory',
}

/** Turns an errno into a refusal. Rethrows everything else, because it is a bug in pen. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  const errno = errnoOf(error)
  if (errno === undefined) throw error
  const reason = BY_ERRNO[errno]
  return reason === undefined
    ? new Refusal('failed', { why: `${REFUSALS.failed} (${errno})` })
    : new Refusal(reason)
}
