import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { initialize } from '../../../config/initialize.ts'
import { writePermissions } from '../../../config/permissions-template.ts'
import { projectHere } from '../../../config/project.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'
import { schemaText } from '../config/schema.ts'

export const verb = defineVerb({
  name: 'init',
  summary: 'Create the config of the current directory',
  details:
    'The profile is coding; package sources are allowed as groups where the files of the project call for them. A .pen/ that is there already is left alone: it takes effect by pen config apply only.',
  flags: defineFlags({
    ...jsonFlag,
    permissions: {
      kind: 'boolean',
      about: 'also write an agent-permissions.json to fill in, if there is none',
    },
  }),
  examples: [
    { line: 'pen init', does: 'once in each project; a second time it changes nothing' },
    {
      line: 'pen init --permissions',
      does: 'with a document by which the project takes away, and never adds',
    },
  ],
  async run({ flags, terminal }) {
    const project = projectHere()
    const done = await initialize(project, schemaText())
    const { workspace } = project.world
    const permissions = flags.permissions ? await permissionsIn(workspace) : undefined
    if (flags.json) terminal.printJson({ ...done, ...(permissions && { permissions }), project: workspace })
    else {
      const lines = inWords(done, workspace)
      if (permissions !== undefined) lines.push(`${permissions}: ${workspace}/agent-permissions.json`)
      for (const line of lines) terminal.print(printable(line, 4096))
    }
    return EXIT.ok
  },
})

async function permissionsIn(workspace: string): Promise<'written' | 'left as it is'> {
  return writePermissions(workspace) ? 'written' : 'left as it is'
}

type Done = Awaited<ReturnType<typeof import('../../../config/initialize.ts').initialize>>

function inWords({ wrote, live, groups, differs }: Done, workspace: string): string[] {
  const said = [
    ...groups.map(({ name, because }) => `allowed: group ${name}, because of ${because}`),
    ...(live === 'written' ? [`in force: ${workspace}`] : []),
  ]
  if (wrote) return [`written: ${workspace}/.pen/config.json`, ...said, ...hints(live, differs)]
  return [`already initialized: ${workspace}/.pen`, ...said, ...hints(live, differs)]
}

function hints(live: Done['live'], differs: boolean): string[] {
  if (live === 'absent')
    return ['nothing of it is in force: look at it with pen config diff, then pen config apply']
  return differs ? ['it is not what is in force: see pen config diff'] : []
}
