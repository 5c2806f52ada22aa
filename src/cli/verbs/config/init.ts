import { PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { type Initialized, initialize, writePermissions } from '../../../config/initialize.ts'
import { projectHere } from '../../../config/project.ts'
import { defineVerb } from '../../frame/verb.ts'
import { fromDevcontainer } from './from-devcontainer.ts'
import { schemaText } from './schema.ts'

export const verb = defineVerb({
  name: 'init',
  summary: 'Create the config of the current directory',
  details:
    'Writes .pen/config.json and the live config. Uses profile coding, and allows the package sources the project needs. An existing .pen/ is kept; apply it with pen config apply.',
  flags: {
    permissions: {
      kind: 'boolean',
      about: 'also write an agent-permissions.json template, if there is none',
    },
    'from-devcontainer': {
      kind: 'boolean',
      about: 'write .pen/config.json from devcontainer.json, for you to read and apply',
    },
  },
  examples: {
    'pen init': 'once per project; running it again changes nothing',
    'pen init --from-devcontainer': 'take over what devcontainer.json says, and list the rest',
    'pen init --permissions': 'also write a file in which the project can restrict permissions',
  },
  async run({ flags, answer }) {
    const project = projectHere()
    if (flags['from-devcontainer']) {
      if (flags.permissions)
        throw new PenError('USAGE', {
          what: '--permissions and --from-devcontainer cannot be combined',
          hint: 'run pen init --permissions afterwards',
        })
      const { data, lines } = await fromDevcontainer(project)
      answer(
        data,
        lines.map(line => printable(line, 4096)),
      )
      return
    }
    const done = await initialize(project, schemaText())
    const { workspace } = project.world
    const hasWritten = flags.permissions && writePermissions(workspace)
    const permissions = flags.permissions ? (hasWritten ? 'written' : 'unchanged') : undefined
    const lines = initLines(done, workspace)
    if (permissions !== undefined) lines.push(`${permissions}: ${workspace}/agent-permissions.json`)
    answer(
      { ...done, ...(permissions && { permissions }), project: workspace },
      lines.map(line => printable(line, 4096)),
    )
  },
})

function initLines({ wrote, live, groups, differs }: Initialized, workspace: string): string[] {
  const lines = [
    wrote ? `written: ${workspace}/.pen/config.json` : `already initialized: ${workspace}/.pen`,
    ...groups.map(({ name, because }) => `allowed: group ${name}, because of ${because}`),
  ]
  if (live === 'written') lines.push(`active for: ${workspace}`)
  if (live === 'absent')
    lines.push('it is not active; fix: pen config diff to review it, then pen config apply')
  else if (differs) lines.push('it differs from the active config; fix: pen config diff')
  return lines
}
