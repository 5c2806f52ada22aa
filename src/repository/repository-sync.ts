/** Brings the sandbox's repository and the host's one in step. One object per git directory: the project's, and each submodule's. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import type { AuditEventOf } from '../audit/event.ts'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { type At, applyHead, applyIndex, applyRefs, type Change, pathText, storeStash } from './apply-sync.ts'
import { Consent, type Guarded } from './consent.ts'
import { type GitRunner, runGit } from './git-runner.ts'
import { importLargeFiles } from './import-large-files.ts'
import { type ImportOptions, importObjects, spend } from './import-objects.ts'
import {
  type Aside,
  agreed,
  currentCommit,
  HELD_HEAD,
  type IndexMove,
  judgeName,
  planSync,
  type Synced,
  type SyncPlan,
  type SyncRules,
} from './plan-sync.ts'
import { type RepositoryState, readHostState, readState } from './state.ts'

/** Remote-tracking refs are the host's: a fetch inside does not move them. */
export const CROSSES_TO_HOST = /^refs\/(?:heads|tags|notes)\//
const CROSSES_TO_SANDBOX = /^refs\/(?:heads|tags|notes|remotes)\//

export interface SyncOptions extends ImportOptions {
  /** The sandbox's worktrees. */
  readonly records: readonly string[]
  /** The sandbox's id, for `refs/pen/<id>/…`. */
  readonly sandbox: string
  /** When the sync must have looked at everything. */
  readonly until: number
  readonly guarded: Guarded
  /** A file of pen's own. It lists the host's indexes that follow a branch at this moment. */
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
  #synced: Synced

  constructor(options: SyncOptions, synced: Synced) {
    this.#options = options
    this.#at = options.gitDir === undefined ? {} : { gitDir: options.gitDir }
    this.#synced = synced
  }

  get synced(): Synced {
    return this.#synced
  }

  /** First the sandbox's changes go to the host, then the host's go to the sandbox. */
  async run(): Promise<SyncReport> {
    const { box, host, records, gitDir } = this.#options
    const [own, theirs] = await Promise.all([
      readState(box.run, gitDir, 'with-large-files'),
      readHostState(host.run, gitDir),
    ])
    if (!records.every(record => own.heads.has(record)) && this.#synced.heads.size > 0)
      throw new Error(`the sandbox's git directory is damaged: nothing was taken over from it`)
    await this.#catchUp(theirs)
    await importLargeFiles(this.#options, own.largeFiles)
    await this.#import(own, theirs)
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
    const { moved, aside } = await this.#toHost(out, needed)
    const after = await readHostState(host.run, gitDir)
    const back = await planSync(
      after,
      own,
      this.#rules(CROSSES_TO_SANDBOX, () => undefined),
    )
    await this.#apply(box.run, back, TO_SANDBOX)
    await this.#setRefs(box.run, 'host', back.aside)
    const now = await readState(box.run, gitDir)
    this.#synced = agreed({ own, now, theirs: after, records }, this.#synced)
    const isOpen = records.some(record => now.heads.get(record)?.isOpen === true)
    const isStaged = !isOpen && (await hasStaged(box.run, host.run, this.#at))
    const worktrees = [...now.heads.keys()].filter(record => !after.heads.has(record))
    const isComplete =
      !isOpen &&
      !isStaged &&
      !out.waits &&
      out.left === 0 &&
      !aside.some(({ reason }) => reason === 'consent') &&
      out.refused.length === 0 &&
      worktrees.length === 0
    return {
      moved,
      aside,
      refused: out.refused,
      deleted: out.deleted,
      left: out.left,
      worktrees,
      isOpen,
      isHostBusy: out.waits && records.some(record => after.heads.get(record)?.isBusy === true),
      isStaged,
      isComplete,
    }
  }

  /** An earlier sync was killed, or the index was locked: the branch moved, and the index did not. */
  async #catchUp(theirs: RepositoryState): Promise<void> {
    const { host, journal } = this.#options
    if (!existsSync(journal)) return
    const moves = JSON.parse(readFileSync(journal, 'utf8')) as readonly IndexMove[]
    if (moves.some(({ record }) => theirs.heads.get(record)?.isBusy)) return
    for (const move of moves)
      if (theirs.heads.get(move.record)?.commit === move.new) await applyIndex(host.run, this.#at, move)
    rmSync(journal, { force: true })
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
    plan: SyncPlan,
    needed: Consent,
  ): Promise<{ readonly moved: readonly string[]; readonly aside: readonly Aside[] }> {
    const { host, sandbox, consent } = this.#options
    const held = await this.#heldStashes(plan.stashes, needed)
    const stashes = plan.stashes.filter(id => !held.some(stash => stash.id === id))
    // Those that are held are counted when they get a ref.
    const refs = plan.refs.filter(({ old }) => old === undefined).length + stashes.length
    spend(this.#options, { refs, moves: plan.refs.length })
    this.#record(plan, held)
    if (plan.indexes.length > 0) writeFileAtomically(this.#options.journal, JSON.stringify(plan.indexes))
    const failed = await this.#apply(host.run, { ...plan, stashes }, TO_HOST)
    rmSync(this.#options.journal, { force: true })
    const aside = [
      ...(await this.#withWorktrees(plan.aside)),
      ...held,
      ...failed.map(({ name, new: id }) => ({ name, id, reason: 'moved-there' as const })),
    ]
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
    const put = aside.flatMap(({ name, reason }) => (reason === 'consent' ? [] : [name]))
    if (consent.size > 0) await this.#dropHeld([...moved, ...heads, ...put, ...stashes.map(heldStash)])
    return { moved, aside }
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
    const hasMoved = ({ branch }: IndexMove): boolean => !failed.some(({ name }) => name === branch)
    for (const move of plan.heads)
      if (!failed.some(({ name }) => name === move.head.branch)) await applyHead(git, this.#at, move, message)
    for (const move of plan.indexes) if (hasMoved(move)) await applyIndex(git, this.#at, move)
    for (const id of plan.stashes) await storeStash(git, this.#at, id, message)
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
      consentToNew: () => Promise.resolve([]),
      consentToStep: () => Promise.resolve([]),
    }
  }
}

const knownTo = (state: RepositoryState): ReadonlySet<string> =>
  new Set([...state.refs.values(), ...commits(state)])

/** Objects that refs name which cross to the host. */
const crossing = ({ refs }: RepositoryState): string[] =>
  [...refs].flatMap(([name, id]) => (CROSSES_TO_HOST.test(name) ? [id] : []))

const commits = ({ heads }: RepositoryState): string[] =>
  [...heads.values()].flatMap(({ commit }) => (commit === undefined ? [] : [commit]))

/** What the user staged before the start is staged on both sides. */
export async function hasStaged(own: GitRunner, theirs: GitRunner, at: At): Promise<boolean> {
  const call = { script: 'git diff-index --cached --ignore-submodules=none HEAD', ...at }
  const [here, there] = await Promise.all([own(call), theirs(call)])
  return here.code === 0 && there.code === 0 && !here.stdout.equals(there.stdout)
}
