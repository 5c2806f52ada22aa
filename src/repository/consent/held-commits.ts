/** The commits that wait for the user's consent, for `pen git log`, and those that the user has seen. */
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { printable } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { runGit } from '../git/git-runner.ts'
import { HostGit } from '../git/host-git.ts'
import { pathText } from '../sync/changed-paths.ts'
import { currentCommit, readState } from '../sync/state.ts'
import { MAX_SYNC_MS, type SyncAllOptions } from '../sync-all.ts'
import { Consent, guardedIn } from './consent.ts'

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
      // What a checkout would write, which may be in commits that the host has.
      const step = isStash ? await needed.toStash(id) : await needed.toStep(current, id)
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
