/** What is only in the sandbox's repositories, or was put aside on the host, for `pen git status`. It changes nothing. */
import { existsSync, readdirSync } from 'node:fs'
import { printable } from '../base/printable.ts'
import type { HostPath } from '../policy/files/path.ts'
import { hasCommit, newCommits, peel } from './consent/new-commits.ts'
import { syncedFile } from './copy/make-own-directory.ts'
import { GitBox } from './git/git-box.ts'
import { runGit } from './git/git-runner.ts'
import { HostGit } from './git/host-git.ts'
import { CROSSES_TO_HOST } from './sync/repository-sync.ts'
import { hasStaged, onlyInside, readState } from './sync/state.ts'
import { readSynced } from './sync/synced-file.ts'
import type { SyncAllOptions } from './sync-all.ts'

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
  readonly what: 'not on the host yet' | 'unfinished' | 'deleted in the sandbox' | 'put aside on the host'
  readonly commit: string | undefined
}

export async function pendingIn(options: SyncAllOptions): Promise<readonly Pending[]> {
  try {
    return await readPending(options)
  } catch (error) {
    // The run ended meanwhile, and left nothing.
    if (!existsSync(`${options.entry}/synced`)) return []
    throw error
  }
}

async function readPending({ git, world, records, entry, dir }: SyncAllOptions): Promise<readonly Pending[]> {
  using host = new HostGit(git.path, `${entry}/empty`)
  const box = new GitBox(world, git, dir)
  const out: Pending[] = []
  for (const { path } of [git, ...git.submodules]) {
    const below = path === git.path ? undefined : path.slice(git.path.length + 1)
    const before = below === undefined ? '' : `${below}: `
    const [own, theirs] = [await readState(box.run, below, 'all'), await readState(host.run, below)]
    const { refs: synced, stashes: known } = readSynced(
      syncedFile(`${entry}/synced`, path.slice(git.path.length)),
    )
    for (const name of new Set([...own.refs.keys(), ...theirs.refs.keys()])) {
      const [id, other] = [own.refs.get(name), theirs.refs.get(name)]
      if (!CROSSES_TO_HOST.test(name) || id === other || (id === undefined && !synced.has(name))) continue
      // The host is ahead, and the sandbox follows with the next sync.
      if (id !== undefined && id === synced.get(name)) continue
      const short = printable(`${before}${name.replace(/^refs\/heads\//, '')}`, 200)
      out.push({
        name: short,
        what: id === undefined ? 'deleted in the sandbox' : 'not on the host yet',
        commit: id,
      })
    }
    const at = below === undefined ? {} : { gitDir: below }
    for (const commit of own.stashes)
      if (!known.has(commit) && !theirs.stashes.includes(commit))
        out.push({ name: `${before}stash`, what: 'not on the host yet', commit })
    for (const [name, commit] of await onlyInside(host.run, at, own))
      out.push({ name: printable(`${before}${name}`, 200), what: 'not on the host yet', commit })
    const ours = (below === undefined ? records : ['.']).filter(record => own.heads.has(record))
    const made = [...own.heads.keys()].filter(record => !theirs.heads.has(record))
    for (const record of [...ours, ...made]) {
      const { branch, commit, isOpen } = own.heads.get(record) ?? {}
      const name = record === '.' ? before : `${before}${printable(record, 200)}: `
      if (isOpen)
        out.push({ name: `${name}rebase, merge, pick or bisect`, what: 'unfinished', commit: undefined })
      else if (branch === undefined && commit !== undefined && !(await hasCommit(host.run, at, commit)))
        out.push({ name: `${name}HEAD`, what: 'not on the host yet', commit })
    }
    for (const [records, theirs] of [
      [ours, host.run],
      [made, undefined],
    ] as const)
      if (await hasStaged(box.run, theirs, at, records))
        out.push({ name: `${before}staged files`, what: 'not on the host yet', commit: undefined })
  }
  return out
}

const ASIDE = `git for-each-ref --format='%(objectname) %(refname)' "$1"`

/** Commits below `refs/pen` that no ref of the user's has. They stay there after the sandbox's directory is gone. */
export async function asideIn(
  { git, world }: Pick<SyncAllOptions, 'git' | 'world'>,
  empty: string,
): Promise<readonly Pending[]> {
  using host = new HostGit(git.path, empty)
  const top = `refs/pen/${world.sandbox.id}`
  const out: Pending[] = []
  for (const { path } of [git, ...git.submodules]) {
    const at = path === git.path ? {} : { gitDir: path.slice(git.path.length + 1) }
    const listed = (await runGit(host.run, { script: ASIDE, args: [top], ...at })).toString().split('\n')
    const refs = listed.flatMap(line => {
      const [id = '', ref = ''] = line.split(' ')
      return /^(?:heads|tags|notes|older)\//.test(ref.slice(top.length + 1)) ? [{ id, ref }] : []
    })
    if (refs.length === 0) continue
    const ids = refs.map(({ id }) => id)
    const [peeled, unmerged] = [await peel(host.run, at, ids), await newCommits(host.run, at, ids)]
    for (const { id, ref } of refs) {
      if (!unmerged.has(peeled.get(id)?.id ?? '')) continue
      const name = printable(`${at.gitDir === undefined ? '' : `${at.gitDir}: `}${ref}`, 300)
      out.push({ name, what: 'put aside on the host', commit: id })
    }
  }
  return out
}
