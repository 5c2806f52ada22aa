import { EXIT } from '../../../base/error.ts'
import { Budget } from '../../../repository/budget.ts'
import { shownCommits } from '../../../repository/pending.ts'
import { budgetFile, syncAll } from '../../../repository/sync-all.ts'
import { defineVerb } from '../../frame/verb.ts'
import { ownRepositories } from './status.ts'

export const verb = defineVerb({
  name: 'git import',
  summary: "Take over the sandbox's commits now",
  details:
    'pen does this by itself while a sandbox runs and at its end. Use it after a failure, or with --accept for commits that wait for your consent. Exit code 1 if something stays in the sandbox.',
  flags: {
    accept: { kind: 'boolean', about: 'also take over what pen git log has shown' },
  },
  examples: {
    'pen git import': 'sync both repositories',
    'pen git import --accept': 'take over what waits for your consent',
  },
  async run({ flags, env, answer }) {
    const lines: string[] = []
    let isComplete = true
    for (const options of await ownRepositories(env)) {
      const consent = flags.accept ? shownCommits(options.world.sandbox.stateDir) : new Set<string>()
      Budget.forget(budgetFile(options.entry))
      const result = await syncAll({ ...options, consent })
      lines.push(...result.lines)
      isComplete &&= result.isComplete
    }
    answer({ version: 1, isComplete, lines }, isComplete ? [...lines, 'everything is on the host'] : lines)
    return isComplete ? EXIT.ok : EXIT.failed
  },
})
