import { EXIT } from '../../../base/error.ts'
import { loadPolicy } from '../../../config/load.ts'
import { findProject } from '../../../config/project.ts'
import { policyData } from '../../../plan/data.ts'
import { policyText, settingsText } from '../../../plan/show.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'config show',
  summary: 'Print the active policy and the source of each part',
  details:
    "Merges the profile, the live config, live text lists and agent-permissions.json. The project's .pen/ is not included; see pen config diff. Values of variables are not shown, because they may be secrets.",
  flags: jsonFlag,
  examples: [
    { line: 'pen config show', does: 'show what a new sandbox can do' },
    { line: 'pen config show --json', does: 'print JSON' },
  ],
  async run({ flags, terminal }) {
    const { policy, merged } = await loadPolicy(findProject(), {
      flags: {},
      offline: false,
      allowUserExpansion: false,
      grants: 'shown',
    })
    if (flags.json)
      terminal.printJson({
        version: 1,
        layers: merged.layers.map(layer => layer.name),
        policy: policyData(policy),
      })
    else terminal.print(`${policyText(policy, merged)}\n${settingsText(policy)}`)
    return EXIT.ok
  },
})
