import { auditDirectory } from '../../../audit/directory.ts'
import { editAndWait } from '../../../audit/edit-and-wait.ts'
import { printable } from '../../../base/printable.ts'
import { editLiveConfig, editNetworkList } from '../../../config/edit.ts'
import { printRule } from '../../../policy/network/net-rule.ts'
import { denyRules } from '../../frame/endpoints.ts'
import { grantTemporarily, lifeFlags } from '../../frame/grant-flags.ts'
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
  examples: [
    { line: 'pen deny telemetry.example.com', does: 'deny all ports' },
    { line: 'pen deny cdn.example.com:443 --once', does: 'deny the waiting connection, or the next one' },
  ],
  async run({ flags, positionals, project, answer }) {
    const rules = await denyRules(positionals.target)
    const denied = rules.map(printRule)
    const life = await editAndWait(auditDirectory(project.stateDir), async () => {
      const granted = await grantTemporarily(project, flags, { effect: 'deny', by: 'pen deny', rules })
      if (granted === undefined)
        await editLiveConfig(project, config =>
          editNetworkList(config, 'deny', list => {
            const added = denied.filter(text => !list.includes(text))
            return added.length === 0 ? list : [...list, ...added]
          }),
        )
      return granted
    })
    const { workspace } = project.world
    answer(
      { denied, project: workspace, ...(life !== undefined && { life }) },
      `denied for ${printable(workspace)}: ${denied.join(', ')}${life === undefined ? '' : `, ${life}`}`,
    )
  },
})
