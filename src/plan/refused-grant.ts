/**
 * Reports a grant of a path that the policy itself refuses. On the command line that is a contradiction and stops the run. In a
 * document it may be meant for another profile, so it becomes a note.
 */
import { PenError } from '../base/error.ts'
import type { FileVerdict } from '../policy/files/decide-file.ts'
import type { HostPath } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { showSource } from '../policy/source.ts'

export function refusedGrant(
  policy: Policy,
  path: HostPath,
  read: FileVerdict,
  write: FileVerdict,
): readonly string[] {
  const { files } = policy
  const reader = read.ok ? undefined : files.read.find(({ rule }) => rule.path === path)
  const writer = isProtected(write) ? files.write.find(({ rule }) => rule.path === path) : undefined
  const [grant, verdict] = reader !== undefined ? [reader, read] : [writer, write]
  if (grant === undefined || verdict.ok) return []
  const what =
    verdict.reason === 'protected'
      ? `${path} is protected, because ${verdict.why}: no grant opens it for writing`
      : `${path} is denied: ${verdict.why}`
  if (grant.source.layer !== 'command line')
    return [`${what}; the grant by ${showSource(grant.source)} has no effect`]
  throw new PenError('PATH_REFUSED', {
    what,
    at: writer === undefined && !isWritten(policy, path) ? '--read' : '--write',
    hint:
      verdict.reason === 'protected'
        ? `leave the flag out: ${verdict.fix}; or name what you need below it`
        : `leave the flag out, or ${verdict.fix}`,
  })
}

const isProtected = (verdict: FileVerdict): boolean => !verdict.ok && verdict.reason === 'protected'
const isWritten = ({ files }: Policy, path: string): boolean =>
  files.write.some(({ rule }) => rule.path === path)
