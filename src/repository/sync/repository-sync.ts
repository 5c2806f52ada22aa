/** Brings the sandbox's repository and the host's one in step. One object per git directory: the project's, and each submodule's. */
import type { AuditEventOf } from '../../audit/event.ts'
import { Consent, type Guarded } from '../consent/consent.ts'
import { hasCommit } from '../consent/new-commits.ts'
import type { GitRunner } from '../git/git-runner.ts'
import { importLargeFiles } from '../import/import-large-files.ts'
import { type ImportOptions, importObjects, spend } from '../import/import-objects.ts'
import { Agreement } from './agreement.ts'
import { type At, applyHead, applyIndex, applyRefs, type Change, pathText, storeStash } from './apply-sync.ts'
import { chooseRefs } from './choose-refs.ts'
import { judgeName } from './judge-name.ts'
import { MoveJournal, movesHead } from './move-journal.ts'
import { HELD_HEAD } from './plan-heads.ts'
import { type Aside, planSync, type Synced, type SyncPlan, type SyncRules } from './plan-sync.ts'
import { commitsIn, dropAside, setAside, withWorktrees } from './set-aside.ts'
import {
  currentCommit,
  hasStaged,
  knownTo,
  onlyInside,
  type RepositoryState,
  readHostState,
  readState,
  sameHead,
  sameHeads,
} from './state.ts'

/**
 * Remote-tracking refs are the host's: a fetch inside does not move them. git keeps what `git diff` shows of a file in
 * `notes/textconv`, and a sandbox could show another text there.
 */
export const CROSSES_TO_HOST = /^refs\/(?:heads|tags|notes(?!\/textconv\/))\//
const CROSSES_TO_SANDBOX = /^refs\/(?:heads|tags|notes|remotes)\//

export interface SyncOptions extends ImportOptions {
  /** The sandbox's worktrees. */
  readonly records: readonly string[]
  /** The sandbox's id, for `refs/pen/<id>/…`. */
  readonly sandbox: string
  /** When the sync must have looked at everything. */
  readonly until: number
  readonly guarded: Guarded
  /** A file of pen's own. It lists what moves on the host at this moment. */
  readonly journal: string
  /** Commits that the user has seen, and agreed to. */
  readonly consent: ReadonlySet<string>
  /** Called before a ref of the host moves, and for each that does not. */
  readonly record: (event: RefEvent) => void
}

export type RefEvent = AuditEventOf<'ref-moved' | 'ref-refused'>

export interface SyncReport extends Pick<SyncPlan, 'aside' | 'refused' | 'deleted' | 'left'> {
  /** Refs that moved on the host. */
  readonly moved: readonly string[]
  /** Worktrees that were made in the sandbox. The host's git does not know them. */
  readonly worktrees: readonly string[]
  /** An operation is unfinished in the sandbox's repository. */
  readonly isOpen: boolean
  /** The sandbox has commits for a branch, and an operation is unfinished on the host, or its index is locked. */
  readonly isHostBusy: boolean
  /** Its index has entries that are in no commit. */
  readonly isStaged: boolean
  /** Everything is on the host. */
  readonly isComplete: boolean
}

/** The rest comes with the next sync. */
const MAX_NEW = 1000

const heldStash = (id: string): string => `refs/stash-${id.slice(0, 10)}`

const TO_HOST = 'pen: from the sandbox'
const TO_SANDBOX = 'pen: from the host'

export class RepositorySync {
  readonly #options: SyncOptions
  readonly #at: At
  readonly #synced: Agreement
  readonly #journal: MoveJournal
  /** Objects that this sync has brought. */
  readonly #imported = new Set<string>()

  constructor(options: SyncOptions, synced: Synced) {
    this.#options = options
    this.#at = options.gitDir === undefined ? {} : { gitDir: options.gitDir }
    this.#synced = new Agreement(synced)
    this.#journal = new MoveJournal(options.journal)
  }

  get synced(): Synced {
    return this.#synced
  }

  /** First the sandbox's changes go to the host, then the host's go to the sandbox. */
  async run(): Promise<SyncReport> {
    const { box, host, records, gitDir } = this.#options
    const [own, theirs] = await Promise.all([
      readState(box.run, gitDir, 'all'),
      readHostState(host.run, gitDir),
    ])
    if (!records.every(record => own.heads.has(record)) && this.#synced.heads.size > 0)
      throw new Error(`the sandbox's git directory is damaged: nothing was taken over from it`)
    this.#synced.addApplied(await this.#journal.catchUp(host.run, this.#at, theirs))
    this.#synced.addSame(own, theirs, records)
    const large = await importLargeFiles(this.#options, own.largeFiles)
    const { out, needed } = await this.#planToHost(own, theirs)
    const tools = (await onlyInside(host.run, this.#at, own)).map(([name]) => ({ name, ...OTHER }))
    const plan = { ...out, refused: [...large, ...out.refused, ...tools] }
    const { moved, aside, refused } = await this.#toHost(plan, needed)
    const after = await readHostState(host.run, gitDir)
    const back = await planSync(after, own, {
      ...this.#rules(CROSSES_TO_SANDBOX, () => undefined),
      sharesBranches: true,
    })
    // A plan for a HEAD that the sandbox moved meanwhile is left to the next sync.
    if (!movesHead(back) || sameHeads(own, await readState(box.run, gitDir))) {
      await this.#apply(box.run, back, TO_SANDBOX)
      const message = TO_SANDBOX
      await setAside(box.run, this.#at, { below: 'host', refs: back.aside, message, onNew: () => undefined })
    }
    const isOpen = records.some(record => own.heads.get(record)?.isOpen === true)
    const isStaged = !isOpen && (await hasStaged(box.run, host.run, this.#at, records))
    const worktrees = [...own.heads.keys()].filter(record => !after.heads.has(record))
    const isComplete =
      !isOpen &&
      !isStaged &&
      !out.waits &&
      // The user moved HEAD just before pen did.
      out.heads.every(({ record, head }) => sameHead(this.#synced.heads.get(record), head)) &&
      out.left === 0 &&
      !aside.some(({ reason }) => reason === 'consent') &&
      refused.length === 0 &&
      worktrees.length === 0
    return {
      moved,
      aside,
      refused,
      deleted: out.deleted,
      left: out.left,
      worktrees,
      isOpen,
      isHostBusy: out.waits && records.some(record => after.heads.get(record)?.isBusy === true),
      isStaged,
      isComplete,
    }
  }

  /** The user works during an import, which may take minutes. HEAD and the index move only from where they are now. */
  async #planToHost(
    own: RepositoryState,
    theirs: RepositoryState,
  ): Promise<{ readonly out: SyncPlan; readonly needed: Consent }> {
    const { host, gitDir, records, guarded, until } = this.#options
    const known = knownTo(theirs)
    const rules: SyncRules = {
      ...this.#rules(CROSSES_TO_HOST, judgeName),
      consentToNew: async now =>
        known.has(now) ? [] : this.#paths(now, [...(await needed.toNew(now)).values()].flat()),
      consentToStep: async (old, now) => this.#paths(now, await needed.toStep(old, now)),
    }
    const chosen = chooseRefs(own, theirs, rules)
    const tips = [...chosen.moved.map(({ now }) => now), ...chosen.detached].filter(id => !known.has(id))
    const stashes = chosen.stashes
    const current = currentCommit(theirs, records)
    const needed = new Consent(guarded, { refs: tips, stashes, current, until })
    await this.#import([...tips, ...stashes], theirs)
    const out = await planSync(own, theirs, rules, chosen)
    const now = await readHostState(host.run, gitDir)
    return sameHeads(now, theirs) ? { out, needed } : await this.#planToHost(own, now)
  }

  /** Each of the tips gets a ref on the host. Without one, a `git gc` there and one inside would lose it. */
  async #import(tips: readonly string[], theirs: RepositoryState): Promise<void> {
    const known = [...new Set([...knownTo(theirs), ...theirs.stashes])]
    const wanted = [...new Set(tips)].filter(id => !this.#imported.has(id))
    await importObjects(this.#options, wanted, known)
    for (const id of wanted) this.#imported.add(id)
  }

  async #toHost(
    planned: SyncPlan,
    needed: Consent,
  ): Promise<Pick<SyncReport, 'moved' | 'aside' | 'refused'>> {
    const { host, sandbox, consent } = this.#options
    const { commits: put, others } = await commitsIn(host.run, this.#at, planned.aside)
    const plan = { ...planned, aside: put, refused: [...planned.refused, ...others] }
    const held = await this.#heldStashes(plan.stashes, needed)
    const stashes = plan.stashes.filter(id => !held.some(stash => stash.id === id))
    // Those that are held are counted when they get a ref.
    const count = plan.refs.filter(({ old }) => old === undefined).length + stashes.length
    spend(this.#options, { refs: count, moves: plan.refs.length })
    this.#record(plan, held)
    this.#journal.begin(plan)
    const failed = await this.#apply(host.run, { ...plan, stashes }, TO_HOST)
    this.#journal.end()
    const left = await commitsIn(
      host.run,
      this.#at,
      failed.map(({ name, new: id }) => ({ name, id, reason: 'moved-there' })),
    )
    const aside = [...(await withWorktrees(host.run, this.#at, plan.aside)), ...held, ...left.commits]
    const isHeld = ({ reason }: Aside): boolean => reason === 'consent'
    const [arrived, waiting] = [aside.filter(one => !isHeld(one)), aside.filter(isHeld)]
    const more = { message: TO_HOST, onNew: () => spend(this.#options, { refs: 1 }) }
    await setAside(host.run, this.#at, { below: sandbox, refs: arrived, ...more })
    await setAside(host.run, this.#at, { below: `${sandbox}/held`, refs: waiting, ...more })
    const moved = plan.refs.filter(move => !failed.includes(move)).map(({ name }) => name)
    const heads = plan.heads.map(({ head }) => head.branch ?? HELD_HEAD)
    const there = [...moved, ...heads, ...arrived.map(({ name }) => name), ...stashes.map(heldStash)]
    if (consent.size > 0) await dropAside(host.run, this.#at, `${sandbox}/held`, there)
    return { moved, aside, refused: [...plan.refused, ...left.others] }
  }

  #record({ refs, heads, aside, refused }: SyncPlan, held: readonly Aside[]): void {
    const { record, gitDir: submodule } = this.#options
    for (const { name: ref, new: commit } of refs) record({ kind: 'ref-moved', ref, commit, submodule })
    for (const { head } of heads) record({ kind: 'ref-moved', ref: 'HEAD', commit: head.commit, submodule })
    for (const { name: ref, id: commit, reason } of [...aside, ...held])
      record({ kind: 'ref-refused', ref, commit, reason, submodule })
    for (const { name: ref, why } of refused)
      record({ kind: 'ref-refused', ref, commit: undefined, reason: why, submodule })
  }

  async #heldStashes(stashes: readonly string[], needed: Consent): Promise<readonly Aside[]> {
    const held: Aside[] = []
    for (const id of stashes.filter(stash => !this.#options.consent.has(stash))) {
      const changes = await needed.toStash(id)
      const paths = changes === 'not a stash' ? ['it is not a stash'] : this.#paths(id, changes)
      if (paths.length > 0) held.push({ name: heldStash(id), id, reason: 'consent', paths })
    }
    return held
  }

  /** What the user agreed to is left out. */
  #paths(now: string, changes: readonly Change[]): readonly string[] {
    return this.#options.consent.has(now) ? [] : [...new Set(changes.map(({ path }) => pathText(path)))]
  }

  async #apply(git: GitRunner, plan: SyncPlan, message: string) {
    const failed = await applyRefs(git, this.#at, plan.refs, message)
    const refs = plan.refs.filter(move => !failed.includes(move))
    this.#synced.addApplied({ refs })
    for (const { record, old, head } of plan.heads) {
      if (failed.some(({ name }) => name === head.branch)) continue
      const commit = refs.find(({ name }) => name === old.branch)?.new ?? old.commit
      const move = { record, old: { ...old, commit }, head }
      if (await applyHead(git, this.#at, move, message)) this.#synced.addApplied({ heads: [move] })
    }
    for (const move of plan.indexes) await applyIndex(git, this.#at, move)
    for (const id of plan.stashes) {
      await storeStash(git, this.#at, id, message)
      this.#synced.addApplied({ stashes: [id] })
    }
    return failed
  }

  #rules(crosses: RegExp, judge: SyncRules['judge']): SyncRules {
    const { records, host, budget } = this.#options
    return {
      synced: this.#synced,
      maxNew: crosses === CROSSES_TO_HOST ? Math.min(MAX_NEW, budget.refsLeft) : Number.POSITIVE_INFINITY,
      crosses,
      records,
      judge,
      contains: async (newer, older) =>
        (
          await host.run({
            script: 'git merge-base --is-ancestor "$1" "$2"',
            args: [older, newer],
            ...this.#at,
          })
        ).code === 0,
      hasCommit: commit => hasCommit(host.run, this.#at, commit),
      consentToNew: () => Promise.resolve([]),
      consentToStep: () => Promise.resolve([]),
    }
  }
}

const OTHER = { why: 'it is no branch, tag or note', fix: 'make a branch of it inside, or delete it' }
