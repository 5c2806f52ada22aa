/**
 * Chooses what can cross now: what moved here since the last sync, and is not refused by its name. It needs no object. So
 * the objects of what waits stay where they are, and the host gets none without a ref.
 */
import { takeName } from './judge-name.ts'
import type { Refused, SyncRules } from './plan-sync.ts'
import type { Head, RepositoryState } from './state.ts'

interface MovedRef {
  readonly name: string
  /** At the last sync, here, and there. */
  readonly was: string | undefined
  readonly now: string
  readonly other: string | undefined
}

export interface Chosen {
  readonly moved: readonly MovedRef[]
  /** Commits of a HEAD without a branch. */
  readonly detached: readonly string[]
  /** Commits of stashes that are not there, oldest first. */
  readonly stashes: readonly string[]
  readonly refused: readonly Refused[]
  readonly deleted: readonly string[]
  /** A branch of HEAD moved, and has to wait. */
  readonly waits: boolean
  /** How many new refs are left for the next sync. */
  readonly left: number
  /** Branches of worktrees there that are not the sandbox's. */
  readonly elsewhere: ReadonlySet<string>
}

const FIX =
  'pen git import tries again; inside, fetch all of its history (git fetch --unshallow), or delete it'

export type ChoiceRules = Pick<SyncRules, 'synced' | 'maxNew' | 'crosses' | 'records' | 'judge'>

export function chooseRefs(here: RepositoryState, there: RepositoryState, rules: ChoiceRules): Chosen {
  const { synced, records } = rules
  const both = [...there.heads, ...here.heads].filter(([record]) => records.includes(record))
  const waiting = branchesOf(both.filter(([record]) => isWaiting(here, there, record)))
  const elsewhere = branchesOf(
    [...there.heads].filter(([record, head]) => !records.includes(record) && !head.isBare),
  )
  const moved: MovedRef[] = []
  const refused: Refused[] = []
  const deleted: string[] = []
  // New refs of one sync may shadow each other, too.
  const taken = new Map(there.refs)
  let waits = false
  let count = 0
  let left = 0
  // The branches of HEAD come first: HEAD cannot move without them.
  for (const name of new Set([...branchesOf(both), ...here.refs.keys(), ...synced.refs.keys()])) {
    if (!rules.crosses.test(name)) continue
    const [was, now, other] = [synced.refs.get(name), here.refs.get(name), there.refs.get(name)]
    if (now === was || now === other) continue
    if (now === undefined) {
      if (other === was) deleted.push(name)
      continue
    }
    // One that moved on both sides gets a new name on the host.
    if (other !== was || other === undefined) count++
    if ((other !== was || other === undefined) && count > rules.maxNew) {
      left++
      continue
    }
    const why = other === undefined ? rules.judge(name, taken) : undefined
    if (why !== undefined) {
      refused.push({ name, why })
      continue
    }
    takeName(taken, name, now)
    if (waiting.has(name) && !elsewhere.has(name)) waits = true
    else moved.push({ name, was, now, other })
  }
  // The last one first: dropping one renames those behind it.
  for (const [i, id] of [...there.stashes.entries()].reverse())
    if (synced.stashes.has(id) && !here.stashes.includes(id)) deleted.push(`stash@{${i}}`)
  const known = new Set([...there.stashes, ...synced.stashes])
  const fresh = here.stashes.filter(id => !known.has(id)).reverse()
  const stashes = fresh.slice(0, Math.max(0, rules.maxNew - count))
  left += fresh.length - stashes.length
  const detached = records.flatMap(record => {
    const { branch, commit } = here.heads.get(record) ?? {}
    const isChosen = branch === undefined && there.heads.has(record) && !isWaiting(here, there, record)
    return isChosen && commit !== undefined ? [commit] : []
  })
  return { moved, detached, stashes, refused, deleted, waits, left, elsewhere }
}

/** Without those whose objects were refused, by id. */
export function without(chosen: Chosen, refused: ReadonlyMap<string, string>): Chosen {
  const names = new Map([
    ...chosen.stashes.map(id => ['refs/stash', id] as const),
    ...chosen.detached.map(id => ['HEAD', id] as const),
    ...chosen.moved.map(({ name, now }) => [name, now] as const),
  ])
  const odd = [...names].flatMap(([name, id]): Refused[] => {
    const why = refused.get(id)
    return why === undefined ? [] : [{ name, why: `its objects were not taken over: ${why}`, fix: FIX }]
  })
  const isThere = (id: string): boolean => !refused.has(id)
  return {
    ...chosen,
    moved: chosen.moved.filter(({ now }) => isThere(now)),
    detached: chosen.detached.filter(isThere),
    stashes: chosen.stashes.filter(isThere),
    refused: [...chosen.refused, ...odd],
  }
}

/** HEAD, its branch and the index of a worktree rest while git works there, on either side. */
export const isWaiting = (here: RepositoryState, there: RepositoryState, record: string): boolean =>
  here.heads.get(record)?.isBusy === true || there.heads.get(record)?.isBusy === true

/** The branch that is checked out, and the one that an unfinished operation comes back to. */
const branchesOf = (heads: readonly (readonly [string, Head])[]): ReadonlySet<string> =>
  new Set(heads.flatMap(([, { branch, returnsTo }]) => [branch ?? [], returnsTo ?? []].flat()))
