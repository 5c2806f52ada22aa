import { EXIT } from '../base/error.ts'
import { editLiveConfig, editNetworkList } from '../config/edit.ts'
import { findProject } from '../config/project.ts'
import { printRule } from '../policy/net-rule.ts'
import { denyRules } from './endpoints.ts'
import { jsonFlag } from './flag-spec.ts'
import { defineVerb } from './verb.ts'

export const verb = defineVerb({
  name: 'deny',
  summary: 'Refuse a host to the sandboxes of this project, whatever else allows it',
  details:
    'Adds to the live config of the project. A running sandbox takes it up within a second, and open connections there end.',
  flags: jsonFlag,
  positionals: {
    target: { arity: 'many', about: 'host, host:port, *.host, ip or ip:port; without a port, all ports' },
  },
  examples: [{ line: 'pen deny telemetry.example.com', does: 'no port of it is reached' }],
  async run({ flags, positionals, terminal }) {
    const rules = await denyRules(positionals.target)
    const project = findProject()
    const denied = rules.map(printRule)
    await editLiveConfig(project, config =>
      editNetworkList(config, 'deny', list => {
        const added = denied.filter(text => !list.includes(text))
        return added.length === 0 ? list : [...list, ...added]
      }),
    )
    if (flags.json) terminal.printJson({ denied, project: project.world.workspace })
    else terminal.print(`denied for ${project.world.workspace}: ${denied.join(', ')}`)
    return EXIT.ok
  },
})
