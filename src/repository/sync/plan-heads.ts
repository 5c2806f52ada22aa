/** Decides where HEAD and the index of each worktree go. They move together with the branch of HEAD, or wait together. */
import { isWaiting } from './choose-refs.ts'
import type { Aside, RefMove, Refused, SyncPlan, SyncRules, WorktreeMove } from './plan-sync.ts'
import { type RepositoryState, sameHead } from './state.ts'

/** The name of a HEAD without a branch that is put aside. */
export const HELD_HEAD = 'refs/heads/HEAD'

interface PlannedRefs {
  readonly moves: readonly RefMove[]
  /** Branches of worktrees that are not the sandbox's. */
  readonly elsewhere: ReadonlySet<string>
  /** Commits without a branch that are there. */
  readonly detached: readonly string[]
}

interface PlannedHeads extends Pick<SyncPlan, 'worktrees'> {
  readonly held: readonly Aside[]
  readonly odd: SyncPlan['refused']
  /** HEAD moved, and has to wait. */
  readonly late: boolean
}

export async function planHeads(
  here: RepositoryState,
  there: RepositoryState,
  {
    synced,
    records,
    contains,
    hasCommit,
    sharesBranches = false,
    consentToNew,
    consentToStep,
    judge,
  }: SyncRules,
  { moves, elsewhere, detached }: PlannedRefs,
): Promise<PlannedHeads> {
  const after = new Map(there.refs)
  for (const { name, new: id } of moves) after.set(name, id)
  const worktrees = new Map<string, WorktreeMove>()
  const held: Aside[] = []
  const odd: Refused[] = []
  let late = false
  for (const record of records) {
    const [from, to, was] = [here.heads.get(record), there.heads.get(record), synced.heads.get(record)]
    if (from === undefined || to === undefined) continue
    const hasMoved = !sameHead(from, to) && !sameHead(from, was)
    if (isWaiting(here, there, record)) {
      late ||= hasMoved
      continue
    }
    // HEAD may stay on a branch that moves. Two worktrees can have one branch, by force: it moves with the first.
    const move = moves.find(({ name }) => name === to.branch)
    const isFirst = ![...worktrees.values()].some(({ ref }) => ref === move)
    const ref = isFirst ? move : undefined
    const start = { record, from: isFirst || move === undefined ? to : { ...to, commit: move.new }, ref }
    if (move !== undefined) worktrees.set(record, { ...start, index: { old: to.commit, new: move.new } })
    if (sameHead(from, to)) continue
    if (from.branch === undefined && !detached.includes(from.commit ?? '')) continue
    if (!sameHead(to, was)) {
      // It moved on both sides. A branch was looked at among the refs.
      const { branch, commit } = from
      if (!hasMoved || branch !== undefined || commit === undefined) continue
      const tips = moves.map(move => move.new)
      if ((await hasCommit(commit)) || (await isInOne(tips, commit, contains))) continue
      const paths = await consentToNew(commit)
      held.push({ name: HELD_HEAD, id: commit, reason: paths.length > 0 ? 'consent' : 'moved-there', paths })
      continue
    }
    // HEAD may name a branch without a commit, or no branch at all.
    const { branch = 'refs/heads/' } = from
    const why = !branch.startsWith('refs/heads/')
      ? 'HEAD names it, and it is not a branch'
      : elsewhere.has(branch) && !sharesBranches
        ? 'HEAD names it, and it is checked out in another worktree'
        : undefined
    const whyNew = branch === 'refs/heads/' || there.refs.has(branch) ? undefined : judge(branch, there.refs)
    if ((why ?? whyNew) !== undefined) {
      if (why === undefined) odd.push({ name: branch, why: whyNew ?? '' })
      else odd.push({ name: branch, why, fix: 'switch to another branch inside' })
      continue
    }
    const commit = from.branch === undefined ? from.commit : after.get(from.branch)
    // HEAD does not go to a branch that was put aside.
    // Its value among the refs counts: HEAD was read a moment later, and the sandbox may have committed in between.
    if (from.branch !== undefined && commit !== here.refs.get(from.branch)) continue
    // A branch without a commit (`--orphan`) has no tree that the index could follow. HEAD moves with its first commit.
    if (commit === undefined && to.commit !== undefined) continue
    // HEAD may change to a branch that came over earlier, or to a commit without a branch.
    const paths =
      commit === undefined
        ? []
        : [...(await consentToNew(commit)), ...(await consentToStep(to.commit, commit))]
    if (paths.length > 0 && commit !== undefined) {
      held.push({ name: from.branch ?? HELD_HEAD, id: commit, reason: 'consent', paths })
      continue
    }
    const index = commit === undefined || commit === to.commit ? undefined : { old: to.commit, new: commit }
    worktrees.set(record, { ...start, head: from, index })
  }
  return { worktrees: [...worktrees.values()], held, odd, late }
}

async function isInOne(
  tips: readonly string[],
  commit: string,
  contains: SyncRules['contains'],
): Promise<boolean> {
  for (const tip of tips) if (await contains(tip, commit)) return true
  return false
}
