/** Syncs the project's repository and each of its submodules. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { BoxWorld } from '../backend/box.ts'
import { printable } from '../base/printable.ts'
import { takeLock } from '../config/lock.ts'
import type { GitDirectory } from '../plan/facts.ts'
import type { HostPath } from '../policy/files/path.ts'
import { showSetting } from '../survey/git/config.ts'
import { repositorySettings } from '../survey/git/directory.ts'
import { guardedIn } from './consent/consent.ts'
import { bothFingerprints, IN_PART } from './copy/fingerprint.ts'
import { isGitDirectory } from './copy/is-git-directory.ts'
import { inStepFile, OWN_KEYS, syncedFile } from './copy/make-own-directory.ts'
import { GitBox } from './git/git-box.ts'
import { HostGit } from './git/host-git.ts'
import { Budget } from './sync/budget.ts'
import { describeReport } from './sync/describe-sync.ts'
import { type RefEvent, RepositorySync } from './sync/repository-sync.ts'
import { REFUSE_PIPES, readState } from './sync/state.ts'
import { readSynced, writeSynced } from './sync/synced-file.ts'

export interface SyncAllOptions {
  readonly git: GitDirectory
  /** Records of the sandbox's worktrees: `.` is the main one. */
  readonly records: readonly string[]
  readonly world: BoxWorld
  /** The top of the project. */
  readonly workspace: string
  /** All places that the sandbox may not write, by the policy or because the host's git runs or reads them. */
  readonly protectedPaths: readonly string[]
  /** Whether the policy lets the sandbox write a path. */
  readonly mayWrite: (path: string) => boolean
  /** Those that mounts hold. */
  readonly heldPaths: readonly string[]
  /** Commits that the user has seen, and agrees to. */
  readonly consent?: ReadonlySet<string>
  readonly record?: (event: RefEvent) => void
  /** pen's directory for this repository, and the sandbox's directory in it. */
  readonly entry: string
  readonly dir: HostPath
}

export interface SyncResult {
  /** Everything is on the host. */
  readonly isComplete: boolean
  /** It stopped halfway. */
  readonly hasFailed: boolean
  /** For the user. */
  readonly lines: readonly string[]
}

/** A sync takes a limited number of new refs, and stops where the user works at this moment. */
const MAX_TURNS = 10
/** A sandbox can make each command on its repository wait: a named pipe in place of a file is enough. */
export const MAX_SYNC_MS = 120_000

/** Beside the sandbox's directory. */
export const budgetFile = (entry: string): string => `${entry}/spent`

/** A failed sync loses nothing, and is tried again with the next change. */
export async function syncAll(options: SyncAllOptions): Promise<SyncResult> {
  const { git, world, entry, dir } = options
  const lines: string[] = []
  let isComplete = true
  let hasFailed = false
  // `pen git import` may run beside the supervisor.
  const lock = await takeLock(`${entry}.sync`, {
    timeoutMs: 60_000,
    busy: 'another pen syncs this repository',
  })
  let host: HostGit | undefined
  try {
    // The run ended while this one waited, and left nothing.
    if (!existsSync(`${entry}/synced`)) return { isComplete: true, hasFailed: false, lines: [] }
    const until = Date.now() + MAX_SYNC_MS
    host = new HostGit(git.path, `${entry}/empty`, until)
    const box = new GitBox(world, git, dir, until)
    const budget = new Budget(budgetFile(entry))
    for (const directory of deepestFirst(git)) {
      const below = directory.path.slice(git.path.length)
      const file = syncedFile(`${entry}/synced`, below)
      const [inStep, now] = [inStepFile(file), bothFingerprints(`${dir}${below}`, directory.path)]
      // It does not keep the others from the host. The next start makes one that is gone.
      if (below !== '' && !isGitDirectory(`${dir}${below}`)) {
        lines.push(
          `git: ${printable(below.slice(1), 300)} is no repository any more in the sandbox: nothing was taken over from it`,
        )
        isComplete = false
        continue
      }
      // A sync takes ten git commands, and there may be many submodules.
      if (below !== '' && isInStep(inStep, now)) continue
      const sync = new RepositorySync(
        {
          ...syncOptions(options, directory, below),
          guarded: guardedIn(options, directory.path, host.run),
          host,
          box,
          budget,
          until,
          journal: `${file}.moving`,
        },
        readSynced(file),
      )
      try {
        let report = await sync.run()
        const goesOn = (): boolean => report.isLate || (report.left > 0 && budget.refsLeft > 0)
        for (let turn = 1; goesOn() && turn < MAX_TURNS; turn++) report = await sync.run()
        const told = describeReport(below, report, world.sandbox.id)
        told.push(...changedSettings(directory.path, `${dir}${below}`))
        if (report.isComplete && told.length === 0) writeFileSync(inStep, now)
        else rmSync(inStep, { force: true })
        lines.push(...told)
        isComplete &&= report.isComplete
        hasFailed ||= report.hasFailed
      } finally {
        // Also what was applied before a failure.
        writeSynced(file, sync.synced)
      }
    }
  } catch (error) {
    isComplete = false
    hasFailed = true
    lines.push(
      `git: ${printable(error instanceof Error ? error.message : String(error), 600)}; pen git import tries again`,
    )
  } finally {
    host?.close()
    lock.release()
  }
  return { isComplete, hasFailed, lines }
}

const isInStep = (file: string, now: string): boolean =>
  !now.includes(IN_PART) && existsSync(file) && readFileSync(file, 'utf8') === now

/** In a box: a link in the directory leads nowhere there. */
export async function removeLocks(
  { git, world }: Pick<SyncAllOptions, 'git' | 'world'>,
  dir: HostPath,
): Promise<void> {
  const script = 'cd "$GIT_DIR" && find . -path ./objects -prune -o -name "*.lock" -type f -exec rm -f {} +'
  await new GitBox(world, git, dir).run({ script })
}

/** A directory that takes longer than this, or that git refuses, does not work inside either. */
const MAX_READ_MS = 10_000

export async function isReadable(
  { git, world, records }: Pick<SyncAllOptions, 'git' | 'world' | 'records'>,
  dir: HostPath,
): Promise<boolean> {
  const box = new GitBox(world, git, dir, Date.now() + MAX_READ_MS)
  const [state, entries] = await Promise.all([
    readState(box.run, undefined, 'all').catch(() => undefined),
    box.run({ script: `${REFUSE_PIPES}; git ls-files --stage >/dev/null` }),
  ])
  return records.some(record => state?.heads.has(record)) && entries.code === 0
}

/** Commits that the host's refs name, and all before them, are there. */
const WALK = `head=$(git rev-parse -q --verify HEAD) || head=
  git rev-list --quiet --stdin $head --branches --tags --glob='refs/notes/*' --glob=refs/stash || exit 3`

/** Whether the history has a commit that is neither in the directory nor on the host. A sandbox may lie about its own directory. */
export async function lacksCommits(
  { git, world, entry }: Pick<SyncAllOptions, 'git' | 'world' | 'entry'>,
  dir: HostPath,
): Promise<boolean> {
  using host = new HostGit(git.path, `${entry}/empty`)
  const box = new GitBox(world, git, dir)
  for (const { path } of [git, ...git.submodules]) {
    const below = path.slice(git.path.length)
    const inStep = inStepFile(syncedFile(`${entry}/synced`, below))
    if (isInStep(inStep, bothFingerprints(`${dir}${below}`, path))) continue
    const at = below === '' ? {} : { gitDir: below.slice(1) }
    const known = await host.run({ script: "git for-each-ref --format='^%(objectname)'", ...at })
    if (known.code === 0 && (await box.run({ script: WALK, input: known.stdout, ...at })).code === 3)
      return true
  }
  return false
}

function syncOptions(
  { world, entry, records, consent = new Set(), record = () => undefined }: SyncAllOptions,
  directory: GitDirectory,
  below: string,
) {
  return {
    world,
    gitDir: below === '' ? undefined : below.slice(1),
    directory,
    isPartial: isPartial(directory.path),
    scratch: `${entry}/incoming`,
    records: below === '' ? records : ['.'],
    sandbox: world.sandbox.id,
    consent,
    record,
  }
}

/** A gitlink may name a commit that the submodule brings in the same sync. */
const deepestFirst = (git: GitDirectory): readonly GitDirectory[] =>
  [git, ...git.submodules].sort((a, b) => b.path.length - a.path.length)

/** Settings do not cross: one could make the host's git run a program. */
function changedSettings(theirs: string, own: string): string[] {
  const read = (dir: string) =>
    new Map(repositorySettings(dir).map(setting => [showSetting(setting), setting.key]))
  const host = read(theirs)
  const changed = [...read(own)]
    .filter(([shown, key]) => !host.has(shown) && !OWN_KEYS.includes(key))
    .map(([shown]) => shown)
  if (changed.length === 0) return []
  const shown = changed.slice(0, 5).map(setting => printable(setting, 100))
  const more = changed.length > 5 ? ` and ${changed.length - 5} more` : ''
  return [
    `git: settings that were changed in the sandbox stay in it: ${shown.join(', ')}${more}; to keep one: git config, on the host`,
  ]
}

/** A partial clone lacks objects on purpose. */
const isPartial = (gitDir: string): boolean =>
  repositorySettings(gitDir).some(({ key }) => /^(?:extensions\.partialclone|remote\.promisor)$/.test(key))
