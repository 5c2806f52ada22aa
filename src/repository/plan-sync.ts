/**
 * Decides what moves from one repository to the other. Each ref is compared with its value at the last sync: what moved here
 * moves there, unless it moved there too. Then it is put aside, and nothing is lost. Both directions use this function.
 */
import { type Head, type RepositoryState, sameHead } from './state.ts'

/** What both repositories had after the last sync. */
export interface Synced {
  readonly refs: ReadonlyMap<string, string>
  readonly heads: ReadonlyMap<string, Head>
  /** A stash that one side has dropped since does not come back. */
  readonly stashes: ReadonlySet<string>
}

export interface RefMove {
  readonly name: string
  /** The value that it must have now. Undefined: it must not exist. */
  readonly old: string | undefined
  readonly new: string
}

export interface HeadMove {
  readonly record: string
  readonly head: Head
}

/** An index follows HEAD of its worktree from one commit to another. Undefined: no commit yet. */
export interface IndexMove {
  readonly record: string
  /** The branch that must have moved. Undefined: HEAD is detached. */
  readonly branch: string | undefined
  readonly old: string | undefined
  readonly new: string
}

/** `consent`: the host's git would run or enter what the commits bring, so a person looks at them first. */
export type AsideReason = 'moved-there' | 'checked-out' | 'tag' | 'consent'

export interface Aside {
  readonly name: string
  readonly id: string
  readonly reason: AsideReason
  /** For `consent`: the paths. Hostile text. */
  readonly paths?: readonly string[]
  /** For `checked-out`: the directory of the worktree. */
  readonly worktree?: string | undefined
}

/** A detached HEAD that waits for consent. */
export const HELD_HEAD = 'refs/heads/HEAD'

export interface SyncPlan {
  readonly refs: readonly RefMove[]
  readonly heads: readonly HeadMove[]
  readonly indexes: readonly IndexMove[]
  readonly aside: readonly Aside[]
  /** Names that would mislead git or a reader. Hostile text. */
  readonly refused: readonly { readonly name: string; readonly why: string }[]
  /** Refs that are gone here. A deletion never crosses by itself. */
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
  /** Paths that need consent, in commits that are not there yet. */
  readonly consentToNew: (now: string) => Promise<readonly string[]>
  /** Paths that need consent when HEAD and the index go from one commit to the other. */
  readonly consentToStep: (old: string | undefined, now: string) => Promise<readonly string[]>
}

export async function planSync(
  here: RepositoryState,
  there: RepositoryState,
  rules: SyncRules,
): Promise<SyncPlan> {
  const { synced, records } = rules
  const refs: RefMove[] = []
  const aside: Aside[] = []
  const refused: { name: string; why: string }[] = []
  const deleted: string[] = []
  const isWaiting = (record: string): boolean =>
    here.heads.get(record)?.isBusy === true || there.heads.get(record)?.isBusy === true
  const branchesOf = (some: (record: string) => boolean): ReadonlySet<string | undefined> =>
    new Set([...there.heads, ...here.heads].flatMap(([record, { branch }]) => (some(record) ? [branch] : [])))
  const ours = branchesOf(record => records.includes(record))
  const waiting = branchesOf(record => records.includes(record) && isWaiting(record))
  const elsewhere = new Set(
    [...there.heads].flatMap(([record, { branch, isBare }]) =>
      records.includes(record) || isBare ? [] : [branch],
    ),
  )
  // New refs of one sync may shadow each other, too.
  const taken = new Map(there.refs)
  const checkedOut = new Set(records.map(record => there.heads.get(record)?.branch))
  const consentFor = async (name: string, now: string, moves: boolean): Promise<readonly string[]> => {
    const paths = await rules.consentToNew(now)
    if (paths.length > 0 || !moves || !checkedOut.has(name)) return paths
    return await rules.consentToStep(there.refs.get(name), now)
  }
  let waits = false
  let count = 0
  let left = 0
  // The branches of HEAD come first: HEAD cannot move without them.
  for (const name of new Set([...ours, ...here.refs.keys(), ...synced.refs.keys()])) {
    if (name === undefined || !rules.crosses.test(name)) continue
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
    // What moved on both sides is merged later. What the host alone changed is not the sandbox's.
    const isForward = other === was || (other !== undefined && (await rules.contains(now, other)))
    const consent = why === undefined ? await consentFor(name, now, isForward) : []
    if (why === undefined) takeName(taken, name, now)
    if (why !== undefined) refused.push({ name, why })
    else if (consent.length > 0) aside.push({ name, id: now, reason: 'consent', paths: consent })
    else if (elsewhere.has(name)) aside.push({ name, id: now, reason: 'checked-out' })
    else if (waiting.has(name)) waits = true
    else if (other !== undefined && name.startsWith('refs/tags/'))
      aside.push({ name, id: now, reason: 'tag' })
    else if (isForward) refs.push({ name, old: other, new: now })
    else if (other === undefined || !(await rules.contains(other, now)))
      aside.push({ name, id: now, reason: 'moved-there' })
  }
  const { heads, indexes, held, odd } = await planHeads(here, there, rules, refs, isWaiting)
  const known = new Set([...there.stashes, ...synced.stashes])
  const fresh = here.stashes.filter(id => !known.has(id)).reverse()
  const stashes = fresh.slice(0, Math.max(0, rules.maxNew - count))
  return {
    refs,
    heads,
    indexes,
    aside: [...aside, ...held],
    refused: [...refused, ...odd],
    deleted,
    waits,
    stashes,
    left: left + fresh.length - stashes.length,
  }
}

export interface SyncedStates {
  /** The sandbox's repository when the sync began, and when it ended. It may have moved meanwhile, and back. */
  readonly own: RepositoryState
  readonly now: RepositoryState
  /** The host's, when the sync ended. */
  readonly theirs: RepositoryState
  readonly records: readonly string[]
}

/**
 * Values that both had: at the end of the sync, or when the host had taken over what it began with. Where they never agreed,
 * the old agreement stays, so that the difference is seen again.
 */
export function agreed({ own, now, theirs, records }: SyncedStates, synced: Synced): Synced {
  const refs = new Map<string, string>()
  for (const name of new Set([...own.refs.keys(), ...now.refs.keys(), ...theirs.refs.keys()])) {
    const b = theirs.refs.get(name)
    const id = [now, own].some(state => state.refs.get(name) === b) ? b : synced.refs.get(name)
    if (id !== undefined) refs.set(name, id)
  }
  const heads = new Map(
    records.flatMap(record => {
      const b = theirs.heads.get(record)
      const same = [now, own]
        .map(state => state.heads.get(record))
        .find(a => a !== undefined && a.branch === b?.branch && a.commit === b?.commit)
      const head = same ?? synced.heads.get(record)
      return head === undefined ? [] : [[record, head] as const]
    }),
  )
  const stashes = new Set(
    [...now.stashes, ...theirs.stashes].filter(
      id => synced.stashes.has(id) || (now.stashes.includes(id) && theirs.stashes.includes(id)),
    ),
  )
  return { refs, heads, stashes }
}

/** What the host, or the sandbox, has checked out. */
export const currentCommit = ({ heads }: RepositoryState, records: readonly string[]): string | undefined =>
  records.map(record => heads.get(record)?.commit).find(commit => commit !== undefined)

async function planHeads(
  here: RepositoryState,
  there: RepositoryState,
  { synced, records, consentToNew, consentToStep, judge }: SyncRules,
  moves: readonly RefMove[],
  isWaiting: (record: string) => boolean,
): Promise<
  Pick<SyncPlan, 'heads' | 'indexes'> & { readonly held: readonly Aside[]; readonly odd: SyncPlan['refused'] }
> {
  const after = new Map(there.refs)
  for (const { name, new: id } of moves) after.set(name, id)
  const heads: HeadMove[] = []
  const indexes: IndexMove[] = []
  const held: Aside[] = []
  const odd: { name: string; why: string }[] = []
  for (const record of records) {
    const [from, to, was] = [here.heads.get(record), there.heads.get(record), synced.heads.get(record)]
    if (from === undefined || to === undefined || isWaiting(record)) continue
    const follows = !sameHead(from, to) && sameHead(to, was)
    if (!follows && !sameHead(from, to)) continue
    // HEAD may name a branch without a commit, or no branch at all.
    const { branch = 'refs/heads/' } = from
    const why = branch.startsWith('refs/heads/') ? undefined : 'HEAD names it, and it is not a branch'
    const whyNew = branch === 'refs/heads/' || there.refs.has(branch) ? undefined : judge(branch, there.refs)
    if (follows && (why ?? whyNew) !== undefined) {
      odd.push({ name: branch, why: why ?? whyNew ?? '' })
      continue
    }
    const commit = from.branch === undefined ? from.commit : after.get(from.branch)
    // A branch that was put aside has not moved. HEAD and index stay with it.
    // Its value among the refs counts: HEAD was read a moment later, and the sandbox may have committed in between.
    if (from.branch !== undefined && commit !== here.refs.get(from.branch)) continue
    // A branch without a commit (`--orphan`) has no tree that the index could follow. HEAD moves with its first commit.
    if (commit === undefined && to.commit !== undefined) continue
    // HEAD may change to a branch that came over earlier, or to a commit without a branch.
    const paths =
      follows && commit !== undefined
        ? [...(await consentToNew(commit)), ...(await consentToStep(to.commit, commit))]
        : []
    if (paths.length > 0 && commit !== undefined) {
      held.push({ name: from.branch ?? HELD_HEAD, id: commit, reason: 'consent', paths })
      continue
    }
    if (follows) heads.push({ record, head: from })
    if (commit !== undefined && commit !== to.commit)
      indexes.push({ record, branch: from.branch, old: to.commit, new: commit })
  }
  return { heads, indexes, held, odd }
}

/** Letters of any language, and what people write in branch names. No shell, terminal or glob character. */
const PLAIN = /^[\p{L}\p{N}._/+@#=-]+$/u
/** Words that git reads as something else than a branch or a tag: a commit by its id, or a file of its own. */
const SPECIAL = /^(?:@|[A-Z_]*HEAD|[0-9a-f]{7,64}|.*-g[0-9a-f]{4,})$/
const PREFIXED = /^(?:refs|heads|tags|remotes|notes|pen|stash)(?:\/|$)/
const MAX_PART = 200

/** Why a new ref from a sandbox is refused; undefined when it is fine. git checks the form of the name itself. */
export function judgeName(name: string, there: ReadonlyMap<string, string>): string | undefined {
  const short = name.replace(/^refs\/[^/]+\//, '')
  const parts = short.split('/')
  if (parts.some(part => part.startsWith('-'))) return 'a part of its name starts with "-"'
  if (!PLAIN.test(short) || short !== short.normalize('NFC')) return 'its name has unusual characters'
  if (parts.some(part => Buffer.byteLength(part) > MAX_PART)) return 'its name is too long'
  if (SPECIAL.test(short) || PREFIXED.test(short)) return 'git gives its name another meaning'
  const others = ['refs/heads/', 'refs/tags/', 'refs/remotes/', 'refs/'].map(prefix => `${prefix}${short}`)
  if (others.some(other => other !== name && there.has(other)))
    return 'it would shadow another ref of the same short name'
  // `origin` alone means `refs/remotes/origin/HEAD`.
  if (foldedNames(there).has(`refs/remotes/${short}/`.toLowerCase()))
    return 'it would shadow a remote of the same name'
  return foldedNames(there).has(name.toLowerCase()) ? 'it differs from another ref in case alone' : undefined
}

const folded = new WeakMap<ReadonlyMap<string, string>, Set<string>>()

function takeName(names: Map<string, string>, name: string, id: string): void {
  names.set(name, id)
  folded.get(names)?.add(name.toLowerCase())
}

/** The names in lower case, and the remotes. Collected once: a sandbox may bring thousands of new names. */
function foldedNames(refs: ReadonlyMap<string, string>): ReadonlySet<string> {
  const known = folded.get(refs)
  if (known !== undefined) return known
  const names = new Set(
    [...refs.keys()].flatMap(name => {
      const remote = /^refs\/remotes\/[^/]+\//.exec(name)?.[0]
      return [name.toLowerCase(), ...(remote === undefined ? [] : [remote.toLowerCase()])]
    }),
  )
  folded.set(refs, names)
  return names
}
