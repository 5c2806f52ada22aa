import { EXIT } from '../base/error.ts'
import { editLiveConfig, editNetworkList } from '../config/edit.ts'
import { findProject } from '../config/project.ts'
import { listOf, printRule } from '../policy/net-rule.ts'
import { allowRules } from './endpoints.ts'
import { jsonFlag } from './flag-spec.ts'
import { defineVerb } from './verb.ts'

export const verb = defineVerb({
  name: 'allow',
  summary: 'Let the sandboxes of this project connect to a host, from now on',
  details:
    'Adds to the live config of the project. A running sandbox takes it up within a second. A rule that denies the same host still wins: see pen forget.',
  flags: jsonFlag,
  positionals: {
    target: {
      arity: 'many',
      about: 'host:port (443 if absent), *.host:port, ip:port or host.pen.internal:port',
    },
  },
  examples: [
    { line: 'pen allow registry.example.com:443', does: 'one host, one port' },
    {
      line: 'pen allow 203.0.113.7:5432 host.pen.internal:8080',
      does: 'an address, and a service of this machine',
    },
  ],
  async run({ flags, positionals, terminal }) {
    const rules = await allowRules(positionals.target)
    const project = findProject()
    await editLiveConfig(project, config =>
      rules.reduce((edited, rule) => {
        const text = printRule(rule)
        return editNetworkList(edited, listOf(rule), list => (list.includes(text) ? list : [...list, text]))
      }, config),
    )
    const allowed = rules.map(printRule)
    if (flags.json) terminal.printJson({ allowed, project: project.world.workspace })
    else terminal.print(`allowed for ${project.world.workspace}: ${allowed.join(', ')}`)
    return EXIT.ok
  },
})
