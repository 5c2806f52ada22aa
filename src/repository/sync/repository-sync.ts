/** Brings the sandbox's repository and the host's one in step. One object per git directory: the project's, and each submodule's. */
import type { AuditEventOf } from '../../audit/event.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import { Consent, type Guarded } from '../consent/consent.ts'
import { hasCommit } from '../consent/new-commits.ts'
import { pinObjects } from '../copy/pin-tips.ts'
import type { At, GitRunner } from '../git/git-runner.ts'
import { importLargeFiles } from '../import/import-large-files.ts'
import { type ImportOptions, spend } from '../import/import-objects.ts'
import { Agreement } from './agreement.ts'
import { type AppliedPlan, applyPlan } from './apply-sync.ts'
import { type Change, pathText } from './changed-paths.ts'
import { chooseRefs, without } from './choose-refs.ts'
import { importTips } from './import-tips.ts'
import { judgeName } from './judge-name.ts'
import { MoveJournal, movesHead } from './move-journal.ts'
import { HELD_HEAD } from './plan-heads.ts'
import {
  type Aside,
  planSync,
  type Refused,
  type Synced,
  type SyncPlan,
  type SyncRules,
} from './plan-sync.ts'
import { commitsIn, dropAside, setAside, withWorktrees } from './set-aside.ts'
import {
  currentCommit,
  type Head,
  hasStaged,
  knownTo,
  onlyInside,
  type RepositoryState,
  readHostState,
  readState,
  sameHeads,
  withoutCopies,
} from './state.ts'
import { reportOf, type SyncReport } from './sync-report.ts'

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
  /** The new index of a worktree, until it is in its place. */
  readonly #indexFile: string
  /** Objects that this sync has brought. */
  readonly #imported = new Set<string>()
  #hasFailed = false
  readonly #pins: (() => Promise<void>)[] = []

  constructor(options: SyncOptions, synced: Synced) {
    this.#options = options
    this.#at = options.gitDir === undefined ? {} : { gitDir: options.gitDir }
    this.#synced = new Agreement(synced)
    this.#indexFile = `index.pen-${basename(dirname(options.scratch))}`
    this.#journal = new MoveJournal(options.journal, this.#indexFile)
  }

  get synced(): Synced {
    return this.#synced
  }

  /** First the sandbox's changes go to the host, then the host's go to the sandbox. */
  async run(): Promise<SyncReport> {
    const { box, host, gitDir } = this.#options
    const [read, theirs] = await Promise.all([
      readState(box.run, gitDir, 'all'),
      readHostState(host.run, gitDir),
    ])
    // `git worktree remove` inside removes the record of a worktree.
    const records = this.#options.records.filter(record => read.heads.has(record))
    if (records.length === 0 && this.#synced.heads.size > 0)
      throw new Error(`the sandbox's git directory is damaged: nothing was taken over from it`)
    this.#synced.addApplied(await this.#journal.catchUp(host.run, this.#at, theirs))
    this.#synced.addSame(read, theirs, records)
    const own = await withoutCopies(box.run, this.#at, read, theirs, this.#synced.operations)
    const large = await importLargeFiles(this.#options, own.largeFiles)
    const { out, aside, refused, ...applied } = await this.#bring(own, theirs, large)
    const after = await readHostState(host.run, gitDir)
    const back = await planSync(after, own, {
      ...this.#rules(CROSSES_TO_SANDBOX, () => undefined),
      sharesBranches: true,
    })
    let { isLate } = applied
    // A plan for a HEAD that the sandbox moved meanwhile is left to the next sync.
    if (!movesHead(back) || sameHeads(own, await readState(box.run, gitDir))) {
      isLate ||= (await this.#apply(box.run, back, TO_SANDBOX)).isLate
      const message = TO_SANDBOX
      await setAside(box.run, this.#at, { below: 'host', refs: back.aside, message, onNew: () => undefined })
    }
    const isOpen = records.some(record => own.heads.get(record)?.isOpen === true)
    const isStaged = !isOpen && (await hasStaged(box.run, host.run, this.#at, records))
    const worktrees = [...own.heads.keys()].filter(record => !after.heads.has(record))
    // `git status` holds the lock for a moment, and may end without a change.
    const isLocked = ({ isBusy, isOpen }: Head): boolean => isBusy && !isOpen
    if (out.waits) isLate ||= [...own.heads.values()].some(isLocked)
    const isHostBusy = out.waits && records.some(record => after.heads.get(record)?.isBusy === true)
    const facts = {
      isLate,
      hasFailed: this.#hasFailed,
      aside,
      refused,
      worktrees,
      isOpen,
      isHostBusy,
      isStaged,
    }
    return reportOf(out, facts)
  }

  /** Objects, then refs. Between the two, a pin holds the objects. */
  async #bring(own: RepositoryState, theirs: RepositoryState, large: readonly Refused[]) {
    try {
      const { out, needed } = await this.#planToHost(own, theirs)
      const tools = await onlyInside(this.#options.host.run, this.#at, own)
      const others = [...tools.map(([name]) => ({ name, ...OTHER })), ...(own.isInPart ? [ODD] : [])]
      const plan = { ...out, refused: [...large, ...out.refused, ...others] }
      return { out, ...(await this.#toHost(plan, needed)) }
    } finally {
      for (const unpin of this.#pins.splice(0).reverse()) await unpin()
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
    const refused = await this.#import([...tips, ...stashes], theirs)
    const out = await planSync(own, theirs, rules, without(chosen, refused))
    const now = await readHostState(host.run, gitDir)
    return sameHeads(now, theirs) ? { out, needed } : await this.#planToHost(own, now)
  }

  /** Each of the tips gets a ref on the host. Without one, a `git gc` there and one inside would lose it. */
  async #import(tips: readonly string[], theirs: RepositoryState): Promise<ReadonlyMap<string, string>> {
    const known = [...new Set([...knownTo(theirs), ...theirs.stashes])]
    const wanted = [...new Set(tips)].filter(id => !this.#imported.has(id))
    const refused = await importTips(this.#options, wanted, known)
    const { host, sandbox, scratch } = this.#options
    const brought = wanted.filter(id => !refused.has(id))
    for (const id of brought) this.#imported.add(id)
    const pinned = { sandbox, entry: dirname(scratch) }
    if (brought.length > 0) this.#pins.push(await pinObjects(host.run, this.#at, pinned, brought))
    this.#hasFailed = refused.size > 0
    return refused
  }

  async #toHost(
    planned: SyncPlan,
    needed: Consent,
  ): Promise<Pick<SyncReport, 'isLate' | 'aside' | 'refused'>> {
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
    const { moved, failed, isLate } = await this.#apply(host.run, { ...plan, stashes }, TO_HOST)
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
    const heads = plan.worktrees.flatMap(({ head }) => (head === undefined ? [] : [head.branch ?? HELD_HEAD]))
    const names = [...moved, ...arrived].map(({ name }) => name)
    const there = [...names, ...heads, ...stashes.map(heldStash)]
    if (consent.size > 0) await dropAside(host.run, this.#at, `${sandbox}/held`, there)
    return { isLate, aside, refused: [...plan.refused, ...left.others] }
  }

  #record({ refs, worktrees, aside, refused }: SyncPlan, held: readonly Aside[]): void {
    const { record, gitDir: submodule } = this.#options
    for (const { name: ref, new: commit } of refs) record({ kind: 'ref-moved', ref, commit, submodule })
    for (const { head } of worktrees)
      if (head !== undefined) record({ kind: 'ref-moved', ref: 'HEAD', commit: head.commit, submodule })
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

  #apply(git: GitRunner, plan: SyncPlan, message: string): Promise<AppliedPlan> {
    return applyPlan(git, this.#at, plan, { message, file: this.#indexFile, agreement: this.#synced })
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

const ODD = {
  name: 'a ref, stash or worktree',
  why: 'pen cannot read what git says of it',
  fix: 'give it a plain name inside, or remove it: git worktree list, git stash list',
}
const OTHER = { why: 'it is no branch, tag or note', fix: 'make a branch of it inside, or delete it' }
