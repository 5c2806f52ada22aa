import { printable } from '../../../base/printable.ts'
import { backUp } from '../../../config/backup.ts'
import { defineVerb } from '../../frame/verb.ts'
import { schemaText } from './schema.ts'

export const verb = defineVerb({
  name: 'config backup',
  summary: "Copy the live config to the project's .pen/",
  details:
    'For version control: writes .pen/config.json with the entries of the live text lists. Text lists in .pen/ are merged into config.json and removed. Links are replaced, not followed.',
  flags: {
    'with-password': { kind: 'boolean', about: 'copy the password of network.upstreamProxy too' },
  },
  examples: {
    'pen config backup': 'then review with git diff and commit',
  },
  async run({ flags, terminal, project, answer }) {
    const done = await backUp(project, {
      withPassword: flags['with-password'],
      schema: schemaText(),
    })
    answer(done, [
      `${done.changed ? 'written' : 'unchanged'}: ${printable(done.file, 4096)}`,
      ...done.removed.map(name => `removed: ${name}, it is in config.json now`),
    ])
    if (done.values.length > 0)
      terminal.note(
        `the project now contains the values of ${printable(done.values.join(', '), 1000)}; check that they are not secret`,
      )
  },
})
