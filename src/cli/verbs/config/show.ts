import { EXIT } from '../../../base/error.ts'
import { loadPolicy } from '../../../config/load.ts'
import { findProject } from '../../../config/project.ts'
import { policyData } from '../../../plan/data.ts'
import { policyText, settingsText } from '../../../plan/show-policy.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'config show',
  summary: 'Print the active policy and the source of each part',
  details:
    'Profile, live config, live text lists and agent-permissions.json, merged. The .pen/ of the project is not in it: pen config diff shows what that would change. Values of variables are not shown: they may be secrets.',
  flags: jsonFlag,
  examples: [
    { line: 'pen config show', does: 'what a sandbox started now may do' },
    { line: 'pen config show --json', does: 'for a program' },
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
