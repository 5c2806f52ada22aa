import { printable } from '../../../base/printable.ts'
import { printRule } from '../../../policy/network/net-rule.ts'
import { lifeFlags, parseRules, writeRules } from '../../frame/network-rules.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'deny',
  summary: 'Deny a host, even if another rule allows it',
  details:
    'Adds a rule to the live config. With --once, --for or --session it is temporary. Running sandboxes apply it within a second and close open connections to the host.',
  flags: lifeFlags,
  positionals: {
    target: { arity: 'many', about: 'host, host:port, *.host, ip or ip:port; without a port, all ports' },
  },
  examples: {
    'pen deny telemetry.example.com': 'deny all ports',
    'pen deny cdn.example.com:443 --once': 'deny the waiting connection, or the next one',
  },
  async run({ flags, positionals, project, answer }) {
    const rules = await parseRules('deny', positionals.target)
    const life = await writeRules(project, 'deny', rules, flags)
    const denied = rules.map(printRule)
    const { workspace } = project.world
    answer(
      { denied, project: workspace, ...(life !== undefined && { life }) },
      `denied for ${printable(workspace)}: ${denied.join(', ')}${life === undefined ? '' : `, ${life}`}`,
    )
  },
})
