/**
 * Consent to commits that bring a submodule. The host's git enters it from then on, so its `.git` must lead to a repository of
 * the host's own. A submodule that was added in the sandbox gets one: without it, `git status` would fail.
 */
import { existsSync, readdirSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { type Lock, tryLock } from '../../config/lock.ts'
import { readGitConfig, readGitFile } from '../../survey/git/directory.ts'
import { Consent, guardedIn } from '../consent/consent.ts'
import { syncedFile } from '../copy/make-own-directory.ts'
import { runGit } from '../git/git-runner.ts'
import { HostGit } from '../git/host-git.ts'
import { parentsOf, pathText } from '../sync/changed-paths.ts'
import { currentCommit, readState } from '../sync/state.ts'
import { writeSynced } from '../sync/synced-file.ts'
import { MAX_SYNC_MS, type SyncAllOptions } from '../sync-all.ts'
import { indexes, moduleName, setAsidePlanted, type Worktrees } from './gitlink-places.ts'

const MAKE = `unset GIT_WORK_TREE; export GIT_DIR="$GIT_DIR/$1"
  mkdir -p "$GIT_DIR" && git init -q --bare -b main --object-format="$2" && git config core.bare false &&
  git config core.logAllRefUpdates true && git config core.worktree "$3"`

/** New submodules of commits that the user agrees to, as absolute paths. Call it before they come over. */
export async function newSubmodules(options: SyncAllOptions): Promise<readonly string[]> {
  const { git, entry, records, consent = new Set() } = options
  using host = new HostGit(git.path, `${entry}/empty`)
  const places = new Set<string>()
  const until = Date.now() + MAX_SYNC_MS
  const tops = new Map(indexes(options).map(({ dir, top }) => [dir, top]))
  for (const { path } of [git, ...git.submodules]) {
    const guarded = guardedIn(options, path, host.run)
    const { at } = guarded
    const top = tops.get(path) ?? options.workspace
    // It may be a commit of another repository, or have come over before.
    const has = { script: 'git cat-file -e "$1^{tree}"', ...at }
    const ids: string[] = []
    for (const id of consent) if ((await host.run({ ...has, args: [id] })).code === 0) ids.push(id)
    if (ids.length === 0) continue
    const current = currentCommit(await readState(host.run, at.gitDir), path === git.path ? records : ['.'])
    const needed = new Consent(guarded, { refs: ids, stashes: [], current, until })
    for (const id of ids)
      for (const change of [
        ...[...(await needed.toNew(id)).values()].flat(),
        ...(await needed.toStep(current, id)),
      ])
        if (change.after.startsWith('160000') && !change.before.startsWith('160000'))
          places.add(`${top}/${pathText(change.path)}`)
  }
  return [...places]
}

/** A sandbox that runs could put its repository back: no sandbox of the project runs until the locks are released. */
export function holdStopped(stateDirs: readonly string[]): readonly Lock[] {
  const tops = stateDirs.map(stateDir => `${stateDir}/git`)
  const entries = new Set(
    tops.filter(existsSync).flatMap(top =>
      readdirSync(top, { withFileTypes: true }).flatMap(entry => {
        const path = `${top}/${entry.name}`
        return entry.isDirectory() ? [path] : path.endsWith('.lock') ? [path.slice(0, -5)] : []
      }),
    ),
  )
  const held: Lock[] = []
  for (const entry of entries) {
    const lock = tryLock(`${entry}.lock`)
    if (lock !== undefined) held.push(lock)
    else {
      for (const one of held) one.release()
      throw new PenError('STATE', {
        what: 'commits with a new submodule are taken over only while no sandbox of the project runs',
        hint: 'end each sandbox (pen stop), then repeat the command',
      })
    }
  }
  return held
}

/** Gives each place a repository of the host's, without commits yet: the next sync brings them. */
export async function makeModules(options: SyncAllOptions, places: readonly string[]): Promise<void> {
  const { git, entry, dir, workspace } = options
  using host = new HostGit(git.path, `${entry}/empty`)
  for (const place of places) {
    const below = moduleName(git.path, readGitFile(`${place}/.git`))
    if (below !== undefined && existsSync(`${git.path}/${below}`)) continue
    const settings = below === undefined ? undefined : readGitConfig(`${dir}/${below}/config`)
    // In a submodule's repository, others lie below its own `modules`. The rest of it is git's.
    const isAmongFiles = parentsOf(below ?? '').some(
      parent =>
        moduleName(git.path, `${git.path}/${parent}`) !== undefined &&
        existsSync(`${git.path}/${parent}/HEAD`) &&
        !below?.startsWith(`${parent}/modules/`),
    )
    if (below === undefined || settings === undefined || isAmongFiles) continue
    const isLong = settings.some(({ key, value }) => key === 'extensions.objectformat' && value === 'sha256')
    const up = '../'.repeat(below.split('/').length + 1)
    const tree = git.path === `${workspace}/.git` ? `${up}${place.slice(workspace.length + 1)}` : place
    const args = [below, isLong ? 'sha256' : 'sha1', tree]
    await runGit(host.run, { script: MAKE, args, env: { GIT_CONFIG_COUNT: '0' } })
    const unborn = { branch: 'refs/heads/main', commit: undefined, isBusy: false, isOpen: false }
    writeSynced(syncedFile(`${entry}/synced`, `/${below}`), {
      refs: new Map(),
      heads: new Map([['.', unborn]]),
      stashes: new Set(),
    })
  }
}

/**
 * A pointer that leads nowhere, or a repository in the working tree itself. Call it when each sandbox's directory was asked:
 * another one may have the repository. Returns lines for the user.
 */
export const setAsideLeft = (worktrees: Worktrees, places: readonly string[]): readonly string[] =>
  setAsidePlanted(
    { workspace: worktrees.workspace, own: worktrees, enclosing: [] },
    places.map(place => `${place}/.git`),
  )
