/**
 * A repository that was made in a sandbox, in a project that had none. It becomes the sandbox's own git directory, and a new
 * one of the host's takes its place. Then the commits come over as always. Runs when the sandbox has ended.
 */
import { closeSync, existsSync } from 'node:fs'
import { CHANGE, unlock } from '../../base/beneath/beneath.ts'
import { lookAt } from '../../base/beneath/look-at.ts'
import { openCanonical } from '../../base/beneath/open-beneath.ts'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { errnoOf } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { tryLock } from '../../config/lock.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { readGitConfig } from '../../survey/git/directory.ts'
import { runGit } from '../git/git-runner.ts'
import { HostGit } from '../git/host-git.ts'
import { judgeName } from '../sync/judge-name.ts'
import { writeSynced } from '../sync/synced-file.ts'
import { type SyncAllOptions, syncAll } from '../sync-all.ts'
import { keepAdopted, takenTo } from './take-repository.ts'

export type AdoptOptions = Omit<SyncAllOptions, 'git' | 'records' | 'entry' | 'dir'>

/** Makes a repository of the host's for one that was taken, and brings the commits over. Returns lines for the user. */
export async function adoptRepository(options: AdoptOptions, name: string): Promise<readonly string[]> {
  const { workspace, world } = options
  const entry = takenTo(world.sandbox.stateDir, name)
  const dir = `${entry}/dir` as HostPath
  if (!existsSync(dir)) return []
  const git: GitDirectory = {
    path: `${workspace}/.git`,
    lentAt: '/run/pen-git/0',
    alternates: [],
    hasLfs: false,
    submodules: [],
  }
  const lock = tryLock(`${entry}.lock`)
  // Another pen has taken it over meanwhile, and syncs it.
  if (lock === undefined) return []
  const top = openCanonical(workspace)
  // The sandbox may have locked the project.
  const relock = unlock(top, CHANGE)
  try {
    // From here on the next run goes on with it, if this one is killed.
    if (!existsSync(`${entry}/synced`))
      writeSynced(`${entry}/synced`, { refs: new Map(), heads: new Map(), stashes: new Set() })
    if (lookAt(git.path) !== undefined)
      return [
        `git: the repository that was made in the sandbox is at ${printable(dir, 500)}; the next run brings its commits to the one that is in the project now`,
      ]
    await makeHostRepository(workspace, dir, entry)
    const { isComplete, lines } = await syncAll({ ...options, git, records: ['.'], entry, dir })
    if (!isComplete) return lines
    const kept = keepAdopted(entry)
    removeTree(entry)
    return [...lines, ...kept]
  } catch (error) {
    const why = errnoOf(error) ?? (error instanceof Error ? error.message : String(error))
    return [
      `git: the repository that was made in the sandbox is at ${printable(dir, 500)}: ${printable(why, 300)}`,
    ]
  } finally {
    relock()
    closeSync(top)
    lock.release()
  }
}

/**
 * With the hash function and the first branch that the sandbox chose, and nothing else of it. It is made in a new directory:
 * git follows what it finds in its place. One rename brings it there. The owner of the project does all of that, not root.
 */
export async function makeHostRepository(workspace: string, dir: HostPath, entry: string): Promise<void> {
  const settings = readGitConfig(`${dir}/config`) ?? []
  const isLong = settings.some(({ key, value }) => key === 'extensions.objectformat' && value === 'sha256')
  const head = readRegularFile(`${dir}/HEAD`, { maxBytes: 1024 })?.toString('utf8') ?? ''
  // git refuses some names only when half of the repository is made. `mv` fails when something is in its place.
  const script = `unset GIT_DIR GIT_WORK_TREE; git check-ref-format "refs/heads/$2" || set -- "$1" main "$3" "$4"
    mkdir -- "$3" && git init -q --object-format="$1" -b "$2" -- "$3" && mv -T -- "$3/.git" "$4"
    code=$?; rm -rf -- "$3"; exit $code`
  const host = new HostGit(workspace, `${entry}/empty`)
  // The new repository's settings are git's own, without those of pen's commands.
  const env = { GIT_CONFIG_COUNT: '0' }
  const made = `${workspace}/.git.new-${crypto.randomUUID()}`
  const args = [isLong ? 'sha256' : 'sha1', firstBranch(head), made, `${workspace}/.git`]
  await runGit(host.run, { script, args, env }).finally(() => host.close())
}

/** The branch that HEAD names, when a branch of that name may come from a sandbox. `head` is hostile. */
export function firstBranch(head: string): string {
  const [, branch = 'main'] = /^ref: refs\/heads\/([A-Za-z0-9][\w./-]{0,100})\n$/.exec(head) ?? []
  return judgeName(`refs/heads/${branch}`, new Map()) === undefined ? branch : 'main'
}
