/** What is only in the sandbox's repositories, for `pen git status` and `pen git log`. Reads, and changes nothing. */
import { existsSync, readdirSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import type { HostPath } from '../policy/files/path.ts'
import { Consent, guardedIn } from './consent/consent.ts'
import { hasCommit } from './consent/new-commits.ts'
import { syncedFile } from './copy/make-own-directory.ts'
import { GitBox } from './git/git-box.ts'
import { runGit } from './git/git-runner.ts'
import { HostGit } from './git/host-git.ts'
import { pathText } from './sync/changed-paths.ts'
import { CROSSES_TO_HOST } from './sync/repository-sync.ts'
import { currentCommit, hasStaged, onlyInside, readState } from './sync/state.ts'
import { readSynced } from './sync/synced-file.ts'
import { MAX_SYNC_MS, type SyncAllOptions } from './sync-all.ts'

/** The directories of sandboxes that run, or left something. */
export function ownDirectories(
  stateDir: string,
): readonly { readonly entry: string; readonly dir: HostPath }[] {
  const top = `${stateDir}/git`
  if (!existsSync(top)) return []
  return readdirSync(top)
    .filter(name => existsSync(`${top}/${name}/synced`))
    .map(name => ({ entry: `${top}/${name}`, dir: `${top}/${name}/dir` as HostPath }))
}

export interface Pending {
  /** `main`, `lib: main` for a submodule. Hostile text. */
  readonly name: string
  readonly what: 'not on the host yet' | 'unfinished' | 'deleted in the sandbox'
  readonly commit: string | undefined
}

export async function pendingIn({
  git,
  world,
  records,
  entry,
  dir,
}: SyncAllOptions): Promise<readonly Pending[]> {
  using host = new HostGit(git.path, `${entry}/empty`)
  const box = new GitBox(world, git, dir)
  const out: Pending[] = []
  for (const { path } of [git, ...git.submodules]) {
    const below = path === git.path ? undefined : path.slice(git.path.length + 1)
    const before = below === undefined ? '' : `${below}: `
    const [own, theirs] = [await readState(box.run, below, 'all'), await readState(host.run, below)]
    const { refs: synced } = readSynced(syncedFile(`${entry}/synced`, path.slice(git.path.length)))
    for (const name of new Set([...own.refs.keys(), ...theirs.refs.keys()])) {
      const [id, other] = [own.refs.get(name), theirs.refs.get(name)]
      if (!CROSSES_TO_HOST.test(name) || id === other || (id === undefined && !synced.has(name))) continue
      const short = printable(`${before}${name.replace(/^refs\/heads\//, '')}`, 200)
      out.push({
        name: short,
        what: id === undefined ? 'deleted in the sandbox' : 'not on the host yet',
        commit: id,
      })
    }
    const at = below === undefined ? {} : { gitDir: below }
    for (const [name, commit] of await onlyInside(host.run, at, own))
      out.push({ name: printable(`${before}${name}`, 200), what: 'not on the host yet', commit })
    const ours = below === undefined ? records : ['.']
    const made = [...own.heads.keys()].filter(record => !theirs.heads.has(record))
    for (const record of [...ours, ...made]) {
      const { branch, commit, isOpen } = own.heads.get(record) ?? {}
      const name = record === '.' ? before : `${before}${printable(record, 200)}: `
      if (isOpen)
        out.push({ name: `${name}rebase, merge, pick or bisect`, what: 'unfinished', commit: undefined })
      else if (branch === undefined && commit !== undefined && !(await hasCommit(host.run, at, commit)))
        out.push({ name: `${name}HEAD`, what: 'not on the host yet', commit })
    }
    if (await hasStaged(box.run, host.run, at, ours))
      out.push({ name: `${before}staged files`, what: 'not on the host yet', commit: undefined })
  }
  return out
}

export interface HeldCommits {
  /** The commit that waits. */
  readonly id: string
  readonly ref: string
  /** Those that need consent, each with id, author and subject. Hostile text, made printable. */
  readonly commits: readonly string[]
  /** What they change, and what the step from HEAD changes. */
  readonly paths: readonly string[]
  /** How many commits and paths are left out. Then pen does not take any of them over. */
  readonly more: number
}

const MAX_COMMITS = 1000
const MAX_PATHS = 5000
const LIST = `git for-each-ref --format='%(objectname) %(refname)' "$1"`
const SHOW = `git log --no-walk=unsorted --stdin --format='%h %an: %s' --`

/** The commits that wait for consent, also in submodules. */
export async function heldCommits(
  options: Omit<SyncAllOptions, 'dir' | 'consent'>,
): Promise<readonly HeldCommits[]> {
  const { git, world, entry, records } = options
  using host = new HostGit(git.path, `${entry}/empty`)
  const prefix = `refs/pen/${world.sandbox.id}/held`
  const out: HeldCommits[] = []
  for (const { path } of [git, ...git.submodules]) {
    const guarded = guardedIn(options, path, host.run)
    const { at } = guarded
    const listed = (await runGit(host.run, { script: LIST, args: [prefix], ...at })).toString().split('\n')
    const held = listed.slice(0, -1).map(line => {
      const [id = '', ref = ''] = line.split(' ')
      return { id, ref, isStash: ref.startsWith(`${prefix}/stash-`) }
    })
    const idsOf = (isStash: boolean) => held.flatMap(one => (one.isStash === isStash ? [one.id] : []))
    const current = currentCommit(await readState(host.run, at.gitDir), path === git.path ? records : ['.'])
    const until = Date.now() + MAX_SYNC_MS
    const needed = new Consent(guarded, { refs: idsOf(false), stashes: idsOf(true), current, until })
    for (const { id, ref, isStash } of held) {
      const brought = await needed.toNew(id)
      // HEAD may have gone to a commit that the host has.
      const step = isStash
        ? await needed.toStash(id)
        : brought.size > 0
          ? []
          : await needed.toStep(current, id)
      const changes = [...[...brought.values()].flat(), ...(step === 'not a stash' ? [] : step)]
      const paths = [...new Set(changes.map(change => change.path))]
      const ids = [...brought.keys()]
      const input = ids.slice(0, MAX_COMMITS).join('\n')
      const log = ids.length === 0 ? '' : (await runGit(host.run, { script: SHOW, input, ...at })).toString()
      out.push({
        id,
        ref: printable(at.gitDir === undefined ? ref : `${at.gitDir}: ${ref}`, 300),
        commits: log
          .split('\n')
          .slice(0, -1)
          .map(one => printable(one, 200)),
        paths: paths.slice(0, MAX_PATHS).map(one => printable(pathText(one), 200)),
        more: Math.max(0, ids.length - MAX_COMMITS) + Math.max(0, paths.length - MAX_PATHS),
      })
    }
  }
  return out
}

const shownFile = (stateDir: string): string => `${stateDir}/git-shown.json`

/** `pen git log` keeps what it has shown. Consent is for that, and not for what the sandbox commits meanwhile. */
export function rememberShown(stateDir: string, held: readonly HeldCommits[]): void {
  const shown = held.flatMap(({ id, more }) => (more === 0 ? [id] : []))
  writeFileAtomically(shownFile(stateDir), JSON.stringify(shown))
}

export function shownCommits(stateDir: string): ReadonlySet<string> {
  const bytes = readRegularFile(shownFile(stateDir), { maxBytes: 1024 * 1024, owner: 'self-or-root' })
  return new Set(bytes === undefined ? [] : (JSON.parse(bytes.toString('utf8')) as string[]))
}
