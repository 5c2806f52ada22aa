import { loadPolicy } from '../../../config/load.ts'
import { policyData } from '../../../plan/data.ts'
import { policyText, settingsText } from '../../../plan/show.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'config show',
  summary: 'Print the active policy and the source of each part',
  details:
    "Merges the profile, the live config, live text lists and agent-permissions.json. The project's .pen/ is not included; see pen config diff. Values of variables are not shown, because they may be secrets.",
  examples: {
    'pen config show': 'show what a new sandbox can do',
    'pen config show --json': 'print JSON',
  },
  async run({ project, answer }) {
    const { policy, merged } = await loadPolicy(project, {
      flags: {},
      offline: false,
      allowUserExpansion: false,
      grants: 'shown',
    })
    answer(
      {
        version: 1,
        layers: merged.layers.map(layer => layer.name),
        policy: policyData(policy),
      },
      `${policyText(policy, merged)}\n${settingsText(policy)}`,
    )
  },
})
