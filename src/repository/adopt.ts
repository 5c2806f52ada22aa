/**
 * A repository that was made in a sandbox, in a project that had none. It becomes the sandbox's own git directory, and a new
 * one of the host's takes its place. Then the commits come over as always. Runs when the sandbox has ended.
 */
import {
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
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
    if (isComplete) {
      keepSettings(dir, `${world.sandbox.stateDir}/quarantine/${name}`)
      emptyEntry(entry)
    }
    return lines
  } catch (error) {
    const why = errnoOf(error) ?? (error instanceof Error ? error.message : String(error))
    return [
      `git: the repository that was made in the sandbox is at ${printable(dir, 500)}: ${printable(why, 300)}`,
    ]
  }
}

/** The user may want a setting or a hook that was made inside. git does not read them there. */
export function keepSettings(dir: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 })
  for (const name of ['config', 'hooks'])
    if (existsSync(`${dir}/${name}`)) renameSync(`${dir}/${name}`, `${to}/git-${name}`)
}

/**
 * With the hash function and the first branch that the sandbox chose, and nothing else of it. It is made in pen's state: git
 * follows what it finds in the project. One rename brings it there, and fails when something is in its place.
 */
export async function makeHostRepository(workspace: string, dir: HostPath, entry: string): Promise<void> {
  const settings = readGitConfig(`${dir}/config`) ?? []
  const isLong = settings.some(({ key, value }) => key === 'extensions.objectformat' && value === 'sha256')
  const head = readRegularFile(`${dir}/HEAD`, { maxBytes: 1024 })?.toString('utf8') ?? ''
  const made = `${entry}/new`
  rmSync(made, { recursive: true, force: true })
  mkdirSync(made, { mode: 0o700 })
  // git refuses some names only when half of the repository is made.
  const script = `unset GIT_DIR GIT_WORK_TREE; git check-ref-format "refs/heads/$2" || set -- "$1" main "$3"
    git init -q --object-format="$1" -b "$2" -- "$3"`
  const host = new HostGit(made, `${entry}/empty`)
  // The new repository's settings are git's own, without those of pen's commands.
  const env = { GIT_CONFIG_COUNT: '0' }
  const args = [isLong ? 'sha256' : 'sha1', firstBranch(head), made]
  await runGit(host.run, { script, args, env }).finally(() => host.close())
  const { uid, gid } = statSync(workspace)
  if (isHostRoot() && uid !== 0) giveTo(`${made}/.git`, uid, gid)
  renameSync(`${made}/.git`, `${workspace}/.git`)
}

/** For a tree that git has just made, where no other user can reach it. */
function giveTo(path: string, uid: number, gid: number): void {
  lchownSync(path, uid, gid)
  if (lstatSync(path).isDirectory()) for (const name of readdirSync(path)) giveTo(`${path}/${name}`, uid, gid)
}

/** The branch that HEAD names, when a branch of that name may come from a sandbox. `head` is hostile. */
export function firstBranch(head: string): string {
  const [, branch = 'main'] = /^ref: refs\/heads\/([A-Za-z0-9][\w./-]{0,100})\n$/.exec(head) ?? []
  return judgeName(`refs/heads/${branch}`, new Map()) === undefined ? branch : 'main'
}
