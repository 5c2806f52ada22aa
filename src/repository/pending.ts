/** What is only in the sandbox's repositories, for `pen git status` and `pen git log`. Reads, and changes nothing. */
import { existsSync, readdirSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import type { HostPath } from '../policy/files/path.ts'
import { changedPaths, pathText } from './apply-sync.ts'
import { GitBox } from './git-box.ts'
import { runGit } from './git-runner.ts'
import { HostGit } from './host-git.ts'
import { syncedFile } from './make-own-directory.ts'
import { CROSSES_TO_HOST, hasStaged } from './repository-sync.ts'
import { readState } from './state.ts'
import type { SyncAllOptions } from './sync-all.ts'
import { readSynced } from './synced-file.ts'

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
    const [own, theirs] = [await readState(box.run, below), await readState(host.run, below)]
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
    for (const record of below === undefined ? records : ['.'])
      if (own.heads.get(record)?.isOpen)
        out.push({ name: `${before}rebase, merge, pick or bisect`, what: 'unfinished', commit: undefined })
    const at = below === undefined ? {} : { gitDir: below }
    if (await hasStaged(box.run, host.run, at))
      out.push({ name: `${before}staged files`, what: 'not on the host yet', commit: undefined })
  }
  return out
}

export interface HeldCommits {
  /** The commit that waits. */
  readonly id: string
  readonly ref: string
  /** Each with id, author and subject. Hostile text, made printable. */
  readonly commits: readonly string[]
  readonly paths: readonly string[]
}

const MAX_COMMITS = 100

/** The commits that wait for consent, also in submodules. */
export async function heldCommits({
  git,
  world,
  entry,
}: Pick<SyncAllOptions, 'git' | 'world' | 'entry'>): Promise<readonly HeldCommits[]> {
  using host = new HostGit(git.path, `${entry}/empty`)
  const prefix = `refs/pen/${world.sandbox.id}/held`
  const out: HeldCommits[] = []
  for (const { path } of [git, ...git.submodules]) {
    const below = path === git.path ? undefined : path.slice(git.path.length + 1)
    const at = below === undefined ? {} : { gitDir: below }
    const ask = async (script: string, ...args: string[]): Promise<string[]> =>
      (await runGit(host.run, { script, args, ...at }))
        .toString()
        .split('\n')
        .filter(line => line !== '')
    // The host may have no commit yet.
    const [head] = await ask('git rev-parse -q --verify HEAD || true')
    for (const line of await ask(`git for-each-ref --format='%(objectname) %(refname)' "$1"`, prefix)) {
      const [id = '', ref = ''] = line.split(' ')
      const script = `git log -n ${MAX_COMMITS} --format='%h %an: %s' "$@" --`
      const log = await ask(script, id, ...(head === undefined ? [] : [`^${head}`]))
      const paths = new Set((await changedPaths(host.run, at, head, id)).map(change => change.path))
      // The third parent of a stash has the files that were not tracked, and the second one those of the index.
      if (ref.startsWith(`${prefix}/stash-`))
        for (const [n, from] of [[2, head] as const, [3, undefined] as const])
          for (const part of await ask('git rev-parse -q --verify "$1" || true', `${id}^${n}`))
            for (const change of await changedPaths(host.run, at, from, part)) paths.add(change.path)
      out.push({
        id,
        ref: printable(below === undefined ? ref : `${below}: ${ref}`, 300),
        commits: log.map(one => printable(one, 200)),
        paths: [...paths].map(one => printable(pathText(one), 200)),
      })
    }
  }
  return out
}

const shownFile = (stateDir: string): string => `${stateDir}/git-shown.json`

/** `pen git log` keeps what it has shown. Consent is for that, and not for what the sandbox commits meanwhile. */
export function rememberShown(stateDir: string, held: readonly HeldCommits[]): void {
  writeFileAtomically(shownFile(stateDir), JSON.stringify(held.map(({ id }) => id)))
}

export function shownCommits(stateDir: string): ReadonlySet<string> {
  const bytes = readRegularFile(shownFile(stateDir), { maxBytes: 1024 * 1024, owner: 'self-or-root' })
  return new Set(bytes === undefined ? [] : (JSON.parse(bytes.toString('utf8')) as string[]))
}
