/** Checks grants and mounts against the denials and protected places of the same policy. */
import { PenError } from '../base/error.ts'
import { type FileVerdict, showDeny } from '../policy/files/decide-file.ts'
import { nameMatches } from '../policy/files/glob.ts'
import { type HostPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { FileDenyRule, Mount } from '../policy/settings.ts'
import { type Sourced, showSource } from '../policy/source.ts'
import type { HostFacts } from './facts.ts'

type HostMount = Extract<Mount, { kind: 'host' }>

/**
 * Reports a grant of a path that the policy itself refuses. On the command line that is a contradiction and stops the run. In a
 * document it may be meant for another profile, so it becomes a note.
 */
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

/** At its own path, denials apply as in every granted directory. */
export const isAtItsOwnPath = ({ host, at }: HostMount): boolean => (host as string) === at

/**
 * A mount shows a part of the host under another path. Denials and protected places apply only at their own paths, so the
 * mounted alias would bypass them. So a mount source may not be, or contain, a denied or protected place, even an absent one.
 * The survey knows more of them than the policy: what settings of git name, and what denied links lead to.
 */
export function checkMountAlias(
  policy: Policy,
  { denied, repository }: Pick<HostFacts, 'denied' | 'repository'>,
  { rule: mount, source }: Sourced<HostMount>,
): void {
  const isShown = ({ path }: { readonly path: string }): boolean => isWithin(path, mount.host)
  const denial = policy.files.deny.find(({ rule }) => mayOverlap(rule, mount.host, policy.workspace))
  const guarded = [
    ...policy.files.protect.map(({ rule }) => rule),
    ...repository.protect,
    ...repository.watch,
  ]
  const guard = mount.mode === 'rw' ? guarded.find(isShown) : undefined
  const refuse = (held: string, hint: string) =>
    new PenError('MOUNT_SOURCE', {
      what: `the mount at ${mount.at} would show ${mount.host} under another path, where ${held} does not apply`,
      at: source.place ?? source.layer,
      hint,
    })
  if (denial !== undefined && !(isAtItsOwnPath(mount) && !isSame(denial.rule, mount.host)))
    throw refuse(`files.deny ${showDeny(denial.rule)}`, 'mount what is needed inside it, or beside it')
  if (isAtItsOwnPath(mount)) return
  const hidden = denied.find(isShown)
  if (hidden !== undefined) throw refuse(`the denial of ${hidden.path}`, 'mount what is needed beside it')
  if (guard !== undefined)
    throw refuse(`the protection of ${guard.path}`, 'mount it read-only, or what is needed inside it')
}

const isSame = (rule: FileDenyRule, host: HostPath): boolean => rule.kind === 'path' && rule.path === host

/** Whether the denied path is the directory or may be inside it. A denial further up is less specific than the mount. */
function mayOverlap(rule: FileDenyRule, host: HostPath, workspace: HostPath): boolean {
  if (rule.kind === 'path') return isWithin(rule.path, host)
  if (!isWithin(host, workspace)) return false
  const names = host === workspace ? [] : host.slice(workspace.length + 1).split('/')
  const { components, anyDepth } = rule.glob
  return (
    anyDepth ||
    (components.length >= names.length && names.every((name, i) => nameMatches(components[i] ?? '', name)))
  )
}
