import { printable } from '../../../base/printable.ts'
import { loadPolicy } from '../../../config/load.ts'
import { type Project, stateDirectories } from '../../../config/project.ts'
import { requestOrder } from '../../../control/client.ts'
import { type AllowRule, covers, printRule, ruleWord } from '../../../policy/network/net-rule.ts'
import { lifeFlags, parseRules, writeRules } from '../../frame/network-rules.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'allow',
  summary: "Allow this project's sandboxes to reach a host",
  details:
    'Adds a rule to the live config. With --once, --for or --session it is temporary and not in backups. Running sandboxes apply it within a second, and waiting connections continue. A deny rule still wins; remove it with pen forget.',
  flags: lifeFlags,
  positionals: {
    target: {
      arity: 'many',
      about: 'host:port (443 if absent), *.host:port, ip:port or host.pen.internal:port',
    },
  },
  examples: {
    'pen allow registry.example.com:443': 'allow one host and port, permanently',
    'pen allow 203.0.113.7:5432 host.pen.internal:8080': 'allow an address, and a service of this machine',
    "pen allow 'GET,HEAD api.example.com/repos/acme/**'": 'allow only these requests; pen opens TLS for it',
    'pen allow cdn.example.com:443 --session': 'until the running sandbox stops',
    'pen allow cdn.example.com:443 --for 1h': 'for one hour; then open connections close',
  },
  async run({ flags, positionals, terminal, project, answer }) {
    const rules = await parseRules('allow', positionals.target)
    const life = await writeRules(project, 'allow', rules, flags)
    const allowed = rules.map(printRule)
    const { workspace } = project.world
    answer(
      { allowed, project: workspace, ...(life !== undefined && { life }) },
      `allowed for ${printable(workspace)}: ${allowed.join(', ')}${life === undefined ? '' : `, ${life}`}`,
    )
    for (const rule of rules.filter(({ request }) => request !== undefined)) {
      const whole = (await wholeRules(project)).find(other => covers(other, rule))
      if (whole !== undefined)
        terminal.note(
          `pen: note: ${printRule(whole)} allows every request already, and rules add up; fix: pen forget ${ruleWord(whole)}, or pen deny METHOD HOST/PATH`,
        )
    }
    const running = await Promise.all(stateDirectories(project).map(requestOrder))
    if (running.some(order => order?.offline === true))
      terminal.note(
        'pen: note: a running sandbox has no network: it was started with --offline; fix: pen stop',
      )
  },
})

async function wholeRules(project: Project): Promise<AllowRule[]> {
  const { policy } = await loadPolicy(project, { flags: {}, offline: false, allowUserExpansion: false })
  return policy.network.allow.map(({ rule }) => rule).filter(({ request }) => request === undefined)
}
