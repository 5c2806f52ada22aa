import { EXIT } from '../../../base/error.ts'
import { heldCommits } from '../../../repository/pending.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { ownRepositories } from './status.ts'

export const verb = defineVerb({
  name: 'git log',
  summary: 'Show commits that wait for your consent',
  details:
    'A commit that brings a submodule or a protected path waits, because programs of the host would enter or run it. Lists such commits and the paths that they change.',
  flags: jsonFlag,
  examples: [
    { line: 'pen git log', does: 'show the commits and their paths' },
    { line: 'pen git import --accept', does: 'then take them over' },
  ],
  async run({ flags, env, terminal }) {
    const [first] = await ownRepositories(env)
    const held = first === undefined ? [] : await heldCommits(first)
    if (flags.json) terminal.printJson({ version: 1, held })
    else if (held.length === 0) terminal.print('nothing waits for your consent')
    for (const { ref, commits, paths } of flags.json ? [] : held) {
      terminal.print(`${ref}:`)
      for (const line of commits) terminal.print(`  ${line}`)
      terminal.print('  changed paths:')
      for (const path of paths) terminal.print(`    ${path}`)
    }
    return EXIT.ok
  },
})
