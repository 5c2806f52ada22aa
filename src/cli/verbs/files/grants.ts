import { printable } from '../../../base/printable.ts'
import { readFileGrants } from '../../../config/grants/file-grants.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'grants',
  summary: "List what this project's sandboxes are granted",
  details: 'Expired grants are not listed. pen logs --all shows every access.',
  examples: {
    'pen grants': 'list paths, access and end time',
  },
  async run({ flags, terminal, project, answer }) {
    const now = Date.now()
    const grants = readFileGrants(project.stateDir).filter(({ until }) => until === undefined || now < until)
    const listed = grants.map(({ path, kind, write, execute, until }) => ({
      path,
      kind,
      write,
      execute,
      until: until === undefined ? null : new Date(until).toISOString(),
    }))
    if (listed.length === 0 && !flags.json) terminal.note('nothing is granted; fix: pen grant PATH')
    answer(
      { project: project.world.workspace, grants: listed },
      listed.map(({ path, write, execute, until }) => {
        const how = `${write ? 'rw' : 'ro'}${execute ? ' exec' : ''}`
        return `${how}  ${printable(path)}${until === null ? '' : `  until ${until}`}`
      }),
    )
  },
})
