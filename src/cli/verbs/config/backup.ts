import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { backUp } from '../../../config/backup.ts'
import { findProject } from '../../../config/project.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { schemaText } from './schema.ts'

export const verb = defineVerb({
  name: 'config backup',
  summary: "Copy the live config to the project's .pen/",
  details:
    'For version control: writes .pen/config.json with the entries of the live text lists. Text lists in .pen/ are merged into config.json and removed. Links are replaced, not followed.',
  flags: {
    'with-password': { kind: 'boolean', about: 'copy the password of network.upstreamProxy too' },
    ...jsonFlag,
  },
  examples: [{ line: 'pen config backup', does: 'then review with git diff and commit' }],
  async run({ flags, terminal }) {
    const done = await backUp(findProject(), {
      withPassword: flags['with-password'],
      schema: schemaText(),
    })
    if (flags.json) terminal.printJson(done)
    else {
      const file = printable(done.file, 4096)
      terminal.print(done.changed ? `written: ${file}` : `unchanged: ${file}`)
      for (const name of done.removed) terminal.print(`removed: ${name}, it is in config.json now`)
    }
    if (done.values.length > 0)
      terminal.note(
        `the project now contains the values of ${printable(done.values.join(', '), 1000)}; check that they are not secret`,
      )
    return EXIT.ok
  },
})
