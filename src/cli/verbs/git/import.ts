import { EXIT } from '../../../base/error.ts'
import { syncAll } from '../../../repository/sync-all.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { ownRepositories } from './status.ts'

export const verb = defineVerb({
  name: 'git import',
  summary: "Take over the sandbox's commits now",
  details:
    'pen does this by itself while a sandbox runs and at its end. Use it after a failure, or with --accept for commits that wait for your consent. Exit code 1 if something stays in the sandbox.',
  flags: {
    accept: { kind: 'boolean', about: 'also take over new submodules and protected paths: see pen git log' },
    ...jsonFlag,
  },
  examples: [
    { line: 'pen git import', does: 'sync both repositories' },
    { line: 'pen git import --accept', does: 'take over what waits for your consent' },
  ],
  async run({ flags, env, terminal }) {
    const results = []
    for (const options of await ownRepositories(env))
      results.push(await syncAll({ ...options, hasConsent: flags.accept }))
    const lines = results.flatMap(result => result.lines)
    const isComplete = results.every(result => result.isComplete)
    if (flags.json) terminal.printJson({ version: 1, isComplete, lines })
    else for (const line of lines) terminal.print(line)
    if (!flags.json && isComplete) terminal.print('everything is on the host')
    return isComplete ? EXIT.ok : EXIT.failed
  },
})
