/** Why the broker said no, or stopped. */
import { errnoOf } from '../base/error.ts'
import type { GrantDenial } from '../policy/files/decide-grant.ts'

/** Words of the broker's own, beside `GrantDenial`. They are in the audit and in what a client is told. */
export const REFUSALS = {
  'bad-path': 'a path is absolute, without empty, "." or ".." components and control characters',
  link: 'a link stands there or on the way, and none is followed',
  outside: 'another file system is mounted there: it needs a grant of its own',
  'not-regular': 'neither a file nor a directory stands there',
  'hard-link': 'the file has a second name, under which it would stay as it was',
  replaced: 'the granted directory was replaced by another since it was granted',
  directory: 'a directory stands there',
  'not-directory': 'no directory stands there',
  absent: 'nothing stands there',
  changed: 'it changed meanwhile',
  'too-large': 'that is more than may be written',
  busy: 'too many requests are under way',
  stalled: 'nothing moved for too long',
  revoked: 'its grant was taken back',
  expired: 'its grant has expired',
  ended: 'the sandbox ends',
  client: 'the client gave up',
  unrecorded: 'the audit cannot be written, and nothing is done without it',
  failed: 'the host could not do it',
} as const

export type RefusalReason = keyof typeof REFUSALS

/** The policy's words, and those for what a sandbox brought about. */
const DENIALS: ReadonlySet<RefusalReason | GrantDenial> = new Set<RefusalReason | GrantDenial>([
  'not-granted',
  'denied-by-rule',
  'read-only',
  'protected',
  'expired',
  'bad-path',
  'link',
  'outside',
  'not-regular',
  'hard-link',
  'replaced',
])

interface Because {
  readonly why?: string
  readonly fix?: string | undefined
  /** For the audit alone. */
  readonly rule?: string | undefined
  readonly from?: string | undefined
}

export class Refusal extends Error {
  readonly reason: RefusalReason | GrantDenial
  readonly fix: string | undefined
  readonly rule: string | undefined
  readonly from: string | undefined

  constructor(reason: RefusalReason | GrantDenial, { why, fix, rule, from }: Because = {}) {
    super(why ?? (reason in REFUSALS ? REFUSALS[reason as RefusalReason] : reason))
    this.reason = reason
    this.fix = fix
    this.rule = rule
    this.from = from
  }

  /** Whether it is a denial, as opposed to what just is not there or could not be done. */
  get isDenial(): boolean {
    return DENIALS.has(this.reason)
  }
}

const BY_ERRNO: Readonly<Record<string, RefusalReason>> = {
  ENOENT: 'absent',
  ELOOP: 'link',
  EXDEV: 'outside',
  ENOTDIR: 'not-directory',
}

/** What the kernel says, in the broker's words. Anything that is no answer of the kernel's is a mistake of pen's. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  const errno = errnoOf(error)
  if (errno === undefined) throw error
  const reason = BY_ERRNO[errno]
  return reason === undefined
    ? new Refusal('failed', { why: `${REFUSALS.failed} (${errno})` })
    : new Refusal(reason)
}
