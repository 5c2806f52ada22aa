import { auditDirectory } from '../../../audit/directory.ts'
import { editAndWait } from '../../../audit/edit-and-wait.ts'
import { printable } from '../../../base/printable.ts'
import { editLiveConfig, editNetworkList } from '../../../config/edit.ts'
import { requestOrder } from '../../../control/client.ts'
import { listOf, printRule } from '../../../policy/network/net-rule.ts'
import { allowRules } from '../../frame/endpoints.ts'
import { grantTemporarily, lifeFlags } from '../../frame/grant-flags.ts'
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
  examples: [
    { line: 'pen allow registry.example.com:443', does: 'allow one host and port, permanently' },
    {
      line: 'pen allow 203.0.113.7:5432 host.pen.internal:8080',
      does: 'allow an address, and a service of this machine',
    },
    { line: 'pen allow cdn.example.com:443 --session', does: 'until the running sandbox stops' },
    { line: 'pen allow cdn.example.com:443 --for 1h', does: 'for one hour; then open connections close' },
  ],
  async run({ flags, positionals, terminal, project, answer }) {
    const rules = await allowRules(positionals.target)
    const life = await editAndWait(auditDirectory(project.stateDir), async () => {
      const granted = await grantTemporarily(project, flags, { effect: 'allow', by: 'pen allow', rules })
      if (granted === undefined)
        await editLiveConfig(project, config =>
          rules.reduce((edited, rule) => {
            const text = printRule(rule)
            return editNetworkList(edited, listOf(rule), list =>
              list.includes(text) ? list : [...list, text],
            )
          }, config),
        )
      return granted
    })
    const allowed = rules.map(printRule)
    const { workspace } = project.world
    answer(
      { allowed, project: workspace, ...(life !== undefined && { life }) },
      `allowed for ${printable(workspace)}: ${allowed.join(', ')}${life === undefined ? '' : `, ${life}`}`,
    )
    if ((await requestOrder(project.stateDir))?.offline === true)
      terminal.note(
        'pen: note: the running sandbox has no network: it was started with --offline; fix: pen stop',
      )
  },
})
