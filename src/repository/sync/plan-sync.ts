/**
 * Decides what moves from one repository to the other. Each ref is compared with its value at the last sync: what moved here
 * moves there, unless it moved there too. Then it is put aside, and nothing is lost. Both directions use this function.
 */
import { type Chosen, chooseRefs } from './choose-refs.ts'
import { planHeads } from './plan-heads.ts'
import type { Head, RepositoryState } from './state.ts'

/** What both repositories had after the last sync. */
export interface Synced {
  readonly refs: ReadonlyMap<string, string>
  readonly heads: ReadonlyMap<string, Head>
  /** A stash that one side has dropped since does not come back. */
  readonly stashes: ReadonlySet<string>
  /** Unfinished operations that both had, by worktree. */
  readonly operations?: ReadonlyMap<string, string>
}

export interface RefMove {
  readonly name: string
  /** The value that it must have now. Undefined: it must not exist. */
  readonly old: string | undefined
  readonly new: string
}

/** What moves together in one worktree. */
export interface WorktreeMove {
  readonly record: string
  /** Where HEAD must be now. */
  readonly from: Pick<Head, 'branch' | 'commit'>
  /** Of the branch that HEAD is on. It is one of the plan's refs. */
  readonly ref?: RefMove | undefined
  /** Where HEAD goes. */
  readonly head?: Head | undefined
  /** The index follows from one commit to the other. Undefined: no commit yet. */
  readonly index?: { readonly old: string | undefined; readonly new: string } | undefined
}

/** `consent`: the host's git would run or enter what the commits bring, so a person looks at them first. */
type AsideReason = 'moved-there' | 'checked-out' | 'tag' | 'consent'

export interface Aside {
  readonly name: string
  readonly id: string
  readonly reason: AsideReason
  /** For `consent`: the paths. Hostile text. */
  readonly paths?: readonly string[]
  /** For `checked-out`: the directory of the worktree. */
  readonly worktree?: string | undefined
}

export interface Refused {
  /** Hostile text. */
  readonly name: string
  readonly why: string
  /** What to do, if another name does not help. */
  readonly fix?: string
}

export interface SyncPlan {
  readonly refs: readonly RefMove[]
  readonly worktrees: readonly WorktreeMove[]
  readonly aside: readonly Aside[]
  /** Names that would mislead git or a reader. Hostile text. */
  readonly refused: readonly Refused[]
  /** Refs and stashes that are gone here. A deletion never crosses by itself. */
  readonly deleted: readonly string[]
  /** An operation is open, or the index is locked: HEAD, its branch and the index move together, later. */
  readonly waits: boolean
  /** Commits of stashes that are not there, oldest first. */
  readonly stashes: readonly string[]
  /** How many new refs are left for the next sync. */
  readonly left: number
}

export interface SyncRules {
  readonly synced: Synced
  /** More new refs at once are a flood. */
  readonly maxNew: number
  /** Which refs cross in this direction. */
  readonly crosses: RegExp
  /** The worktrees that belong to the sandbox. */
  readonly records: readonly string[]
  /** Refuses names. For refs that come from the sandbox. */
  readonly judge: (name: string, there: ReadonlyMap<string, string>) => string | undefined
  /** Whether `newer` has `older` in its history. */
  readonly contains: (newer: string, older: string) => Promise<boolean>
  /** Whether a ref of the host has the commit in its history. */
  readonly hasCommit: (commit: string) => Promise<boolean>
  /** Inside, HEAD may follow the host's to a branch that another worktree has. */
  readonly sharesBranches?: boolean
  /** Paths that need consent, in commits that are not there yet. */
  readonly consentToNew: (now: string) => Promise<readonly string[]>
  /** Paths that need consent when HEAD and the index go from one commit to the other. */
  readonly consentToStep: (old: string | undefined, now: string) => Promise<readonly string[]>
}

/** `chosen` are the refs whose objects are there by now. */
export async function planSync(
  here: RepositoryState,
  there: RepositoryState,
  rules: SyncRules,
  chosen: Chosen = chooseRefs(here, there, rules),
): Promise<SyncPlan> {
  const { refs, aside } = await placeRefs(there, rules, chosen)
  const { worktrees, held, odd, late } = await planHeads(here, there, rules, {
    moves: refs,
    elsewhere: chosen.elsewhere,
    detached: chosen.detached,
  })
  return {
    refs,
    worktrees,
    aside: [...aside, ...held],
    refused: [...chosen.refused, ...odd],
    deleted: chosen.deleted,
    waits: chosen.waits || late,
    stashes: chosen.stashes,
    left: chosen.left,
  }
}

/** Each moves there by its name, or is put aside. */
async function placeRefs(
  there: RepositoryState,
  { records, contains, consentToNew, consentToStep }: SyncRules,
  { moved, elsewhere }: Chosen,
): Promise<Pick<SyncPlan, 'refs' | 'aside'>> {
  const refs: RefMove[] = []
  const aside: Aside[] = []
  const checkedOut = new Set(records.map(record => there.heads.get(record)?.branch))
  for (const { name, was, now, other } of moved) {
    // What moved on both sides is merged later. What the host alone changed is not the sandbox's.
    const isForward = other === was || (other !== undefined && (await contains(now, other)))
    const brought = await consentToNew(now)
    const isStep = brought.length === 0 && isForward && checkedOut.has(name)
    const paths = isStep ? await consentToStep(other, now) : brought
    if (paths.length > 0) aside.push({ name, id: now, reason: 'consent', paths })
    else if (elsewhere.has(name)) aside.push({ name, id: now, reason: 'checked-out' })
    else if (other !== undefined && name.startsWith('refs/tags/'))
      aside.push({ name, id: now, reason: 'tag' })
    else if (isForward) refs.push({ name, old: other, new: now })
    else if (other === undefined || !(await contains(other, now)))
      aside.push({ name, id: now, reason: 'moved-there' })
  }
  return { refs, aside }
}
