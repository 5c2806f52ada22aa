/**
 * The verdict on one file. The most specific rule wins, whatever the order in the config. When a grant and a denial are
 * equally specific, the denial wins. The plan, the file broker and `pen policy explain` all use it.
 */
import { shellWord } from '../../base/printable.ts'
import type { Policy } from '../policy.ts'
import type { FileDenyRule, PathGrant } from '../settings.ts'
import type { Source, Sourced } from '../source.ts'
import { globMatches } from './glob.ts'
import { depth, type HostPath, isWithin } from './path.ts'

export type FileAccess = 'read' | 'write'

export type FileVerdict =
  | { readonly ok: true; readonly rule: string; readonly source: Source }
  | {
      readonly ok: false
      readonly reason: FileDenial
      readonly why: string
      readonly rule?: string
      readonly source?: Source
      readonly fix: string
    }

type FileDenial = 'not-granted' | 'denied-by-rule' | 'read-only' | 'protected'

/** How many path components a denial matched, or -1 when it does not cover the path. */
export function denialDepth(rule: FileDenyRule, path: string, workspace: string): number {
  if (rule.kind === 'path') return isWithin(path, rule.path) ? depth(rule.path) : -1
  if (path === workspace || !isWithin(path, workspace)) return -1
  if (!globMatches(rule.glob, path.slice(workspace.length + 1))) return -1
  // A `**/` glob is as specific as the path itself, so no grant overrides it.
  return rule.glob.anyDepth ? depth(path) : depth(workspace) + rule.glob.components.length
}

/** `path` is canonical if it exists. For an absent path, only its parent is canonical. */
export function decideFile(policy: Policy, path: HostPath, access: FileAccess): FileVerdict {
  const { files, workspace } = policy
  const readable = mostSpecific(files.read, path)
  const writable = mostSpecific(files.write, path)
  // A read grant inside a write grant makes that part read-only, because the more specific grant wins.
  const readOnly = (readable?.rule.rank ?? -1) > (writable?.rule.rank ?? -1)
  const grant = access === 'read' ? readable : readOnly ? undefined : writable
  const denial = deepestDenial(files.deny, path, workspace)

  const refuse = (reason: FileDenial, why: string, by?: { rule: string; source: Source }): FileVerdict => ({
    ok: false,
    reason,
    why,
    fix: fixFor(reason, path, access),
    ...by,
  })

  if (denial !== undefined && (grant === undefined || denial.depth >= grant.rule.rank)) {
    const rule = showDeny(denial.item.rule)
    return refuse('denied-by-rule', `files.deny ${rule} covers it`, { rule, source: denial.item.source })
  }
  if (access === 'write') {
    const guard = files.protect
      .filter(item => isWithin(path, item.rule.path))
      .sort((a, b) => depth(b.rule.path) - depth(a.rule.path))[0]
    if (guard !== undefined && (grant === undefined || depth(guard.rule.path) >= grant.rule.rank))
      return refuse('protected', 'the host would run or trust this file', {
        rule: guard.rule.path,
        source: guard.source,
      })
  }
  if (grant !== undefined) return { ok: true, rule: grant.rule.path, source: grant.source }
  if (readable === undefined) return refuse('not-granted', 'no rule grants it, and absence denies')
  const { path: rule } = readable.rule
  return refuse('read-only', `it is granted for reading only, by ${rule}`, { rule, source: readable.source })
}

function mostSpecific(grants: readonly Sourced<PathGrant>[], path: string): Sourced<PathGrant> | undefined {
  let best: Sourced<PathGrant> | undefined
  for (const grant of grants)
    if (isWithin(path, grant.rule.path) && (best === undefined || grant.rule.rank > best.rule.rank))
      best = grant
  return best
}

function deepestDenial(rules: readonly Sourced<FileDenyRule>[], path: string, workspace: string) {
  let best: { item: Sourced<FileDenyRule>; depth: number } | undefined
  for (const item of rules) {
    const at = denialDepth(item.rule, path, workspace)
    if (at >= 0 && (best === undefined || at > best.depth)) best = { item, depth: at }
  }
  return best
}

export const showDeny = (rule: FileDenyRule): string => (rule.kind === 'path' ? rule.path : rule.glob.text)

/** A sandbox may have chosen the path, so it is quoted for a shell. */
function fixFor(reason: FileDenial, path: string, access: FileAccess): string {
  if (reason === 'denied-by-rule') return 'remove that entry from files.deny'
  if (reason === 'protected') return 'change it yourself, outside the sandbox'
  const word = shellWord(path)
  const rule = `add it to files.${access} in your config`
  return word === undefined ? rule : `pen run --${access} ${word} …, or ${rule}`
}
