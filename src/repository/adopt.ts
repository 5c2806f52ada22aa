/**
 * A repository that was made in a sandbox, in a project that had none. It becomes the sandbox's own git directory, and the
 * host's git makes a new one in its place. Then the commits come over as always. Runs when the sandbox has ended.
 */
import { lstatSync, mkdirSync, renameSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import type { GitDirectory } from '../plan/facts.ts'
import type { HostPath } from '../policy/files/path.ts'
import { readGitConfig } from '../survey/git/directory.ts'
import { runGit } from './git-runner.ts'
import { HostGit } from './host-git.ts'
import { emptyEntry } from './make-own-directory.ts'
import { judgeName } from './plan-sync.ts'
import { type SyncAllOptions, syncAll } from './sync-all.ts'
import { writeSynced } from './synced-file.ts'

export type AdoptOptions = Omit<SyncAllOptions, 'git' | 'records' | 'entry' | 'dir'>

/** Takes the repository out of the project. `name` is that of the run. False when there is none. */
export function takeRepository(workspace: string, stateDir: string, name: string): boolean {
  const place = `${workspace}/.git`
  if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory() !== true) return false
  mkdirSync(`${stateDir}/git/${name}`, { recursive: true, mode: 0o700 })
  renameSync(place, `${stateDir}/git/${name}/dir`)
  return true
}

/** Makes a repository of the host's for one that was taken, and brings the commits over. Returns lines for the user. */
export async function adoptRepository(options: AdoptOptions, name: string): Promise<readonly string[]> {
  const { workspace, world } = options
  const entry = `${world.sandbox.stateDir}/git/${name}`
  const dir = `${entry}/dir` as HostPath
  const git: GitDirectory = {
    path: `${workspace}/.git`,
    lentAt: '/run/pen-git/0',
    alternates: [],
    hasLfs: false,
    submodules: [],
  }
  try {
    await makeHostRepository(workspace, dir, entry)
    writeSynced(`${entry}/synced`, { refs: new Map(), heads: new Map(), stashes: new Set() })
    const { isComplete, lines } = await syncAll({ ...options, git, records: ['.'], entry, dir })
    if (isComplete) emptyEntry(entry)
    return lines
  } catch (error) {
    const why = errnoOf(error) ?? (error instanceof Error ? error.message : String(error))
    return [
      `git: the repository that was made in the sandbox is at ${printable(dir, 500)}: ${printable(why, 300)}`,
    ]
  }
}

/** With the hash function and the first branch that the sandbox chose, and nothing else of it. */
async function makeHostRepository(workspace: string, dir: HostPath, entry: string): Promise<void> {
  const settings = readGitConfig(`${dir}/config`) ?? []
  const isLong = settings.some(({ key, value }) => key === 'extensions.objectformat' && value === 'sha256')
  const head = readRegularFile(`${dir}/HEAD`, { maxBytes: 1024 })?.toString('utf8') ?? ''
  // git refuses some names only when half of the repository is made.
  const script = `unset GIT_DIR GIT_WORK_TREE; git check-ref-format "refs/heads/$2" || set -- "$1" main "$3"
    git init -q --object-format="$1" -b "$2" -- "$3"`
  const host = new HostGit(workspace, `${entry}/empty`)
  // The new repository's settings are git's own, without those of pen's commands.
  const env = { GIT_CONFIG_COUNT: '0' }
  const args = [isLong ? 'sha256' : 'sha1', firstBranch(head), workspace]
  await runGit(host.run, { script, args, env }).finally(() => host.close())
}

/** The branch that HEAD names, when a branch of that name may come from a sandbox. `head` is hostile. */
export function firstBranch(head: string): string {
  const [, branch = 'main'] = /^ref: refs\/heads\/([A-Za-z0-9][\w./-]{0,100})\n$/.exec(head) ?? []
  return judgeName(`refs/heads/${branch}`, new Map()) === undefined ? branch : 'main'
}
