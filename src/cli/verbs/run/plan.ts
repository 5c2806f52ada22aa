import { EXIT, type ExitCode } from '../../../base/error.ts'
import { planData, policyData } from '../../../plan/data.ts'
import { planText, projectDocument, showExpansion } from '../../../plan/show.ts'
import type { Prepared } from '../../../run/prepare.ts'
import { prepare } from '../../../run/prepare.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'plan',
  summary: 'Show the policy and the plan; run nothing',
  details:
    'Prints the merged policy, the source of each part, the gaps and the exact plan, like pen run --dry-run-policy. Values of variables are not shown, because they may be secrets.',
  flags: { ...policyFlags, ...jsonFlag },
  command: 'optional',
  examples: [
    { line: 'pen plan', does: 'show the policy for a shell' },
    {
      line: 'pen plan --allow registry.example.com:443 -- npm ci',
      does: 'for one command, with one more host',
    },
    { line: 'pen plan --json', does: 'print JSON' },
  ],
  async run({ flags, command, env, terminal }) {
    const prepared = await prepare({
      command,
      env,
      allowUserExpansion: flags['allow-user-expansion'],
      offline: flags.offline,
      flags: project => flagDocument(flags, project),
    })
    return showPlan(prepared, flags.json, terminal)
  },
})

export function showPlan({ loaded, plan }: Prepared, json: boolean, terminal: Terminal): ExitCode {
  const { policy, merged } = loaded
  if (json)
    terminal.printJson({
      version: 1,
      layers: merged.layers.map(layer => layer.name),
      projectDocument: projectDocument(merged),
      expanded: merged.expanded.map(showExpansion),
      policy: policyData(policy),
      plan: planData(plan),
    })
  else terminal.print(planText(policy, plan, merged))
  return EXIT.ok
}
