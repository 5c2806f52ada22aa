import { EXIT } from '../../../base/error.ts'
import type { Lock } from '../../../config/lock.ts'
import { type Project, stateDirectories } from '../../../config/project.ts'
import { shownCommits } from '../../../repository/consent/held-commits.ts'
import { isOfReview } from '../../../repository/own-repository.ts'
import {
  holdStopped,
  makeModules,
  newSubmodules,
  setAsideLeft,
} from '../../../repository/submodules/accept-submodules.ts'
import { Budget } from '../../../repository/sync/budget.ts'
import { mergeAside } from '../../../repository/sync/merge-aside.ts'
import { budgetFile, syncAll } from '../../../repository/sync-all.ts'
import type { Prepared } from '../../../run/prepare.ts'
import { repositoryOptions } from '../../../run/repository-options.ts'
import { defineVerb } from '../../frame/verb.ts'
import { ownRepositories, putAside } from './status.ts'

export const verb = defineVerb({
  name: 'git import',
  summary: "Take over the sandbox's commits now",
  details:
    'pen does this by itself while a sandbox runs and at its end. Use it after a failure, with --accept for commits that wait for your consent, or with --merge for a branch that moved on both sides: branch and index move, the working tree stays as it is. Exit code 1 if something stays in the sandbox.',
  flags: {
    accept: { kind: 'boolean', about: 'also take over what pen git log has shown' },
    merge: { kind: 'boolean', about: 'also merge commits that were put aside below refs/pen' },
  },
  examples: {
    'pen git import': 'sync both repositories',
    'pen git import --accept': 'take over what waits for your consent',
    'pen git import --merge': 'merge what was put aside',
  },
  async run({ flags, env, project, answer }) {
    const lines: string[] = []
    let isComplete = true
    const { prepared, repositories } = await importable(project, env)
    const consent = flags.accept ? shownCommits(prepared.loaded.project.stateDir) : new Set<string>()
    const locks: Lock[] = []
    const added = new Set<string>()
    try {
      for (const options of repositories) {
        Budget.forget(budgetFile(options.entry))
        const places = await newSubmodules({ ...options, consent })
        if (places.length > 0 && locks.length === 0) locks.push(...holdStopped(stateDirectories(project)))
        await makeModules(options, places)
        for (const place of places) added.add(place)
      }
      for (const options of repositories.slice(0, 1)) lines.push(...setAsideLeft(options, [...added]))
      if (flags.merge) lines.push(...(await mergeInto(prepared, consent)))
      // The survey finds the repositories that were just made.
      const now = flags.accept ? (await importable(project, env)).repositories : repositories
      for (const options of now) {
        const result = await syncAll({ ...options, consent })
        lines.push(...result.lines)
        isComplete &&= result.isComplete
      }
    } finally {
      for (const lock of locks) lock.release()
    }
    const aside = (await putAside(prepared)).length
    if (aside > 0) lines.push(`${aside} refs are put aside and not merged: pen git status`)
    const isAll = isComplete && aside === 0
    answer({ version: 1, isComplete, lines }, isAll ? [...lines, 'everything is on the host'] : lines)
    return isComplete ? EXIT.ok : EXIT.failed
  },
})

/** What a review changed crosses by `pen accept` alone. */
async function importable(
  project: Project,
  env: Readonly<Record<string, string | undefined>>,
): ReturnType<typeof ownRepositories> {
  const { prepared, repositories } = await ownRepositories(project, env)
  return { prepared, repositories: repositories.filter(({ entry }) => !isOfReview(entry)) }
}

async function mergeInto(prepared: Prepared, consent: ReadonlySet<string>): Promise<readonly string[]> {
  const options = repositoryOptions(prepared)
  if (options === undefined) return []
  const identity = prepared.facts.gitIdentity
  const empty = `${options.world.sandbox.stateDir}/git/empty`
  return await mergeAside({ ...options, heldPaths: [], identity, empty, consent })
}
