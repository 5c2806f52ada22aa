/** Brings the sandbox's repository and the host's one in step. One object per git directory: the project's, and each submodule's. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import type { AuditEventOf } from '../../audit/event.ts'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { Consent, type Guarded } from '../consent/consent.ts'
import { hasCommit, peel } from '../consent/new-commits.ts'
import { type GitRunner, runGit } from '../git/git-runner.ts'
import { importLargeFiles } from '../import/import-large-files.ts'
import { type ImportOptions, importObjects, spend } from '../import/import-objects.ts'
import { Agreement } from './agreement.ts'
import { type At, applyHead, applyIndex, applyRefs, type Change, pathText, storeStash } from './apply-sync.ts'
import {
  type Aside,
  currentCommit,
  HELD_HEAD,
  type IndexMove,
  judgeName,
  planSync,
  type Synced,
  type SyncPlan,
  type SyncRules,
} from './plan-sync.ts'
import {
  commits,
  type Head,
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

/** In the name of a ref that had to make room: see `#setRefs`. */
export const OLDER = /\/older\/[0-9a-f]{32}\//

const TO_HOST = 'pen: from the sandbox'
const TO_SANDBOX = 'pen: from the host'

export class RepositorySync {
  readonly #options: SyncOptions
  readonly #at: At
  readonly #synced: Agreement
  /** Of earlier syncs, where the index is locked or an operation is open. */
  #late: readonly IndexMove[] = []

  constructor(options: SyncOptions, synced: Synced) {
    this.#options = options
    this.#at = options.gitDir === undefined ? {} : { gitDir: options.gitDir }
    this.#synced = new Agreement(synced)
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
    await this.#catchUp(theirs)
    this.#synced.addSame(own, theirs, records)
    const large = await importLargeFiles(this.#options, own.largeFiles)
    await this.#import(own, theirs)
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
      await this.#setRefs(box.run, 'host', back.aside)
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
    const { host, gitDir, records } = this.#options
    const known = knownTo(theirs)
    const needed = new Consent(this.#options.guarded, {
      refs: [...crossing(own), ...commits(own)].filter(id => !known.has(id)),
      stashes: own.stashes.filter(id => !theirs.stashes.includes(id)),
      current: currentCommit(theirs, records),
      until: this.#options.until,
    })
    const out = await planSync(own, theirs, {
      ...this.#rules(CROSSES_TO_HOST, judgeName),
      consentToNew: async now =>
        known.has(now) ? [] : this.#paths(now, [...(await needed.toNew(now)).values()].flat()),
      consentToStep: async (old, now) => this.#paths(now, await needed.toStep(old, now)),
    })
    const now = await readHostState(host.run, gitDir)
    return sameHeads(now, theirs) ? { out, needed } : await this.#planToHost(own, now)
  }

  /** An earlier sync was killed, or the index was locked: refs and HEAD moved, and the index did not. */
  async #catchUp(theirs: RepositoryState): Promise<void> {
    const { host, journal } = this.#options
    if (!existsSync(journal)) return
    const { refs, heads, indexes } = JSON.parse(readFileSync(journal, 'utf8')) as Moves
    this.#synced.addApplied({
      refs: refs.filter(move => theirs.refs.get(move.name) === move.new),
      heads: heads.filter(move => sameHead(theirs.heads.get(move.record), move.head)),
    })
    const headOf = ({ record }: IndexMove): Head | undefined => theirs.heads.get(record)
    this.#late = indexes.filter(move => headOf(move)?.isBusy)
    for (const move of indexes) {
      // What the killed sync did not reach is planned again, and its objects may be gone.
      const { branch, commit, isBusy } = headOf(move) ?? {}
      if (!isBusy && branch === move.branch && commit === move.new) await applyIndex(host.run, this.#at, move)
    }
    this.#list(NO_MOVES)
  }

  /** Before the first move, and after the last one. */
  #list(moves: Moves): void {
    const { journal } = this.#options
    const indexes = [...this.#late, ...moves.indexes]
    if (movesHead(moves) || indexes.length > 0)
      writeFileAtomically(journal, JSON.stringify({ ...moves, indexes }))
    else rmSync(journal, { force: true })
  }

  async #import(own: RepositoryState, theirs: RepositoryState): Promise<void> {
    const known = new Set([...knownTo(theirs), ...theirs.stashes])
    const wanted = [...crossing(own), ...commits(own), ...own.stashes]
    await importObjects(
      this.#options,
      [...new Set(wanted)].filter(id => !known.has(id)),
      [...known],
    )
  }

  async #toHost(
    planned: SyncPlan,
    needed: Consent,
  ): Promise<Pick<SyncReport, 'moved' | 'aside' | 'refused'>> {
    const { host, sandbox, consent } = this.#options
    const { commits: put, others } = await this.#commitsIn(planned.aside)
    const plan = { ...planned, aside: put, refused: [...planned.refused, ...others] }
    const held = await this.#heldStashes(plan.stashes, needed)
    const stashes = plan.stashes.filter(id => !held.some(stash => stash.id === id))
    // Those that are held are counted when they get a ref.
    const refs = plan.refs.filter(({ old }) => old === undefined).length + stashes.length
    spend(this.#options, { refs, moves: plan.refs.length })
    this.#record(plan, held)
    const moves: Moves = { refs: plan.refs, heads: plan.heads, indexes: plan.indexes }
    if (movesHead(moves)) this.#list(moves)
    const failed = await this.#apply(host.run, { ...plan, stashes }, TO_HOST)
    if (movesHead(moves)) this.#list(NO_MOVES)
    const left = await this.#commitsIn(
      failed.map(({ name, new: id }) => ({ name, id, reason: 'moved-there' })),
    )
    const aside = [...(await this.#withWorktrees(plan.aside)), ...held, ...left.commits]
    await this.#setRefs(
      host.run,
      sandbox,
      aside.filter(({ reason }) => reason !== 'consent'),
    )
    await this.#setRefs(
      host.run,
      `${sandbox}/held`,
      aside.filter(({ reason }) => reason === 'consent'),
    )
    const moved = plan.refs.filter(move => !failed.includes(move)).map(({ name }) => name)
    const heads = plan.heads.map(({ head }) => head.branch ?? HELD_HEAD)
    const arrived = aside.flatMap(({ name, reason }) => (reason === 'consent' ? [] : [name]))
    if (consent.size > 0) await this.#dropHeld([...moved, ...heads, ...arrived, ...stashes.map(heldStash)])
    return { moved, aside, refused: [...plan.refused, ...left.others] }
  }

  /** A sandbox can write any id into a ref. git takes no branch that names a file or a tree. */
  async #commitsIn(
    aside: readonly Aside[],
  ): Promise<{ readonly commits: readonly Aside[]; readonly others: SyncPlan['refused'] }> {
    const branches = aside.filter(({ name }) => name.startsWith('refs/heads/'))
    const ids = branches.map(({ id }) => id)
    const types = ids.length === 0 ? undefined : await peel(this.#options.host.run, this.#at, ids)
    const odd = branches.filter(({ id }) => types?.get(id)?.type !== 'commit')
    return {
      commits: aside.filter(one => !odd.includes(one)),
      others: odd.map(({ name }) => ({ name, why: 'it names no commit', fix: 'delete it inside' })),
    }
  }

  async #withWorktrees(aside: readonly Aside[]): Promise<readonly Aside[]> {
    if (!aside.some(({ reason }) => reason === 'checked-out')) return aside
    const call = { script: 'git worktree list --porcelain', ...this.#at }
    const text = (await runGit(this.#options.host.run, call)).toString()
    const places = new Map(
      [...text.matchAll(/^worktree (.*)\nHEAD .*\nbranch (.*)$/gm)].map(([, path, branch]) => [branch, path]),
    )
    return aside.map(one => ({ ...one, worktree: places.get(one.name) }))
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

  /** What waited for consent is on its branch now. */
  async #dropHeld(moved: readonly string[]): Promise<void> {
    const { host, sandbox } = this.#options
    for (const name of moved) {
      const ref = `refs/pen/${sandbox}/held/${name.slice('refs/'.length)}`
      await host.run({ script: 'git update-ref -d "$1"', args: [ref], ...this.#at })
    }
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

  /**
   * Sets refs below `refs/pen/`. What a ref had before, and is not in the new history, goes to `older`. So does a commit for
   * which git cannot have the ref. The names there cannot be guessed: a ref of the sandbox must not be in their way.
   */
  async #setRefs(
    git: GitRunner,
    below: string,
    refs: readonly { readonly name: string; readonly id: string }[],
  ): Promise<void> {
    if (refs.length === 0) return
    const [top = ''] = below.split('/')
    const script = `if [ -n "$4" ] && [ -n "$5" ] && ! git merge-base --is-ancestor "$4" "$3"; then
        git update-ref -m "$1" "$5" "$4" "" || exit
      fi
      git update-ref -m "$1" "$2" "$3" "$4" || git update-ref -m "$1" "$6" "$3" ""`
    const list = { script: `git for-each-ref --format='%(objectname) %(refname)' "$1"` }
    const text = (await runGit(git, { ...list, args: [`refs/pen/${top}`], ...this.#at })).toString()
    const lines = text.split('\n').map(line => line.split(' '))
    // Another sandbox, or an earlier run, may have put other commits there.
    const now = new Map(lines.map(([id = '', ref = '']) => [ref, id]))
    const older = new Set(
      lines.flatMap(([id, ref = '']) => (OLDER.test(ref) ? [`${id} ${ref.replace(OLDER, '/')}`] : [])),
    )
    for (const { name, id } of refs) {
      const ref = `refs/pen/${below}/${name.slice('refs/'.length)}`
      const old = now.get(ref)
      if (old === id || (old === undefined && older.has(`${id} ${ref}`))) continue
      if (git === this.#options.host.run) spend(this.#options, { refs: 1 })
      const spare = (): string =>
        `refs/pen/${top}/older/${crypto.randomUUID().replaceAll('-', '')}${ref.slice(`refs/pen/${top}`.length)}`
      const args = [TO_HOST, ref, id, old ?? '', older.has(`${old} ${ref}`) ? '' : spare(), spare()]
      await runGit(git, { script, args, ...this.#at })
    }
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

type Moves = Pick<SyncPlan, 'refs' | 'heads' | 'indexes'>
const NO_MOVES: Moves = { refs: [], heads: [], indexes: [] }

const movesHead = ({ refs, heads }: Moves): boolean => refs.length + heads.length > 0

const OTHER = { why: 'it is no branch, tag or note', fix: 'make a branch of it inside, or delete it' }

/** Objects that refs name which cross to the host. */
const crossing = ({ refs }: RepositoryState): string[] =>
  [...refs].flatMap(([name, id]) => (CROSSES_TO_HOST.test(name) ? [id] : []))
