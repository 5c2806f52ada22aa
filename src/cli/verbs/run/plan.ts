import { planData, policyData } from '../../../plan/data.ts'
import { planText, projectDocument, showExpansion } from '../../../plan/show.ts'
import type { Prepared } from '../../../run/prepare.ts'
import { prepare } from '../../../run/prepare.ts'
import { loadOptions, policyFlags } from '../../frame/policy-flags.ts'
import { defineVerb, type Invocation } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'plan',
  summary: 'Show the policy and the plan; run nothing',
  details:
    'Prints the merged policy, the source of each part, the gaps and the exact plan, like pen run --dry-run-policy. Values of variables are not shown, because they may be secrets.',
  flags: policyFlags,
  command: 'optional',
  examples: {
    'pen plan': 'show the policy for a shell',
    'pen plan --allow registry.example.com:443 -- npm ci': 'for one command, with one more host',
    'pen plan --json': 'print JSON',
  },
  async run({ flags, command, env, project, answer }) {
    showPlan(await prepare({ project, command, env, ...loadOptions(flags, project) }), answer)
  },
})

export function showPlan({ loaded, plan }: Prepared, answer: Invocation['answer']): void {
  const { policy, merged } = loaded
  answer(
    {
      version: 1,
      layers: merged.layers.map(layer => layer.name),
      projectDocument: projectDocument(merged),
      expanded: merged.expanded.map(showExpansion),
      policy: policyData(policy),
      plan: planData(plan),
    },
    planText(policy, plan, merged),
  )
}
