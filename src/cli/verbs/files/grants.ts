import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { readFileGrants } from '../../../config/grants/file-grants.ts'
import { findProject } from '../../../config/project.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'grants',
  summary: "List what this project's sandboxes are granted",
  details: 'Expired grants are not listed. pen logs --all shows every access.',
  flags: jsonFlag,
  examples: [{ line: 'pen grants', does: 'list paths, access and end time' }],
  async run({ flags, terminal }) {
    const project = findProject()
    const now = Date.now()
    const grants = readFileGrants(project.stateDir).filter(({ until }) => until === undefined || now < until)
    if (flags.json)
      terminal.printJson({
        project: project.world.workspace,
        grants: grants.map(({ path, kind, write, execute, until }) => ({
          path,
          kind,
          write,
          execute,
          until: until === undefined ? null : new Date(until).toISOString(),
        })),
      })
    else if (grants.length === 0) terminal.note('nothing is granted; fix: pen grant PATH')
    else
      for (const { path, write, execute, until } of grants)
        terminal.print(
          `${write ? 'rw' : 'ro'}${execute ? ' exec' : ''}  ${printable(path)}${until === undefined ? '' : `  until ${new Date(until).toISOString()}`}`,
        )
    return EXIT.ok
  },
})
