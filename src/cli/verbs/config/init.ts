import { printable } from '../../../base/printable.ts'
import { initialize } from '../../../config/initialize.ts'
import { writePermissions } from '../../../config/permissions-template.ts'
import { projectHere } from '../../../config/project.ts'
import { defineVerb } from '../../frame/verb.ts'
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
  },
  examples: [
    { line: 'pen init', does: 'once per project; running it again changes nothing' },
    {
      line: 'pen init --permissions',
      does: 'also write a file in which the project can restrict permissions',
    },
  ],
  async run({ flags, answer }) {
    const project = projectHere()
    const done = await initialize(project, schemaText())
    const { workspace } = project.world
    const permissions = flags.permissions ? permissionsIn(workspace) : undefined
    const lines = initLines(done, workspace)
    if (permissions !== undefined) lines.push(`${permissions}: ${workspace}/agent-permissions.json`)
    answer(
      { ...done, ...(permissions && { permissions }), project: workspace },
      lines.map(line => printable(line, 4096)),
    )
  },
})

const permissionsIn = (workspace: string): 'written' | 'unchanged' =>
  writePermissions(workspace) ? 'written' : 'unchanged'

type Done = Awaited<ReturnType<typeof initialize>>

function initLines({ wrote, live, groups, differs }: Done, workspace: string): string[] {
  const results = [
    ...groups.map(({ name, because }) => `allowed: group ${name}, because of ${because}`),
    ...(live === 'written' ? [`active for: ${workspace}`] : []),
  ]
  if (wrote) return [`written: ${workspace}/.pen/config.json`, ...results, ...hints(live, differs)]
  return [`already initialized: ${workspace}/.pen`, ...results, ...hints(live, differs)]
}

function hints(live: Done['live'], differs: boolean): string[] {
  if (live === 'absent') return ['it is not active; fix: pen config diff to review it, then pen config apply']
  return differs ? ['it differs from the active config; fix: pen config diff'] : []
}
