import { editAndWait } from '../../../audit/edit-and-wait.ts'
import { EXIT } from '../../../base/error.ts'
import { editLiveConfig, editNetworkList } from '../../../config/edit.ts'
import { removeGrants } from '../../../config/grants/network-grants.ts'
import { parseAllowRule, parseDenyRule } from '../../../policy/network/endpoint.ts'
import { printRule } from '../../../policy/network/net-rule.ts'
import { everySuffixIsPublic } from '../../../policy/network/net-target.ts'
import { auditDirectories, parseRules } from '../../frame/network-rules.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'forget',
  summary: 'Remove a rule made by pen allow or pen deny',
  details:
    'Removes the entry from the live config in any spelling, and temporary rules for the host. Exit code 1 if there was none.',
  positionals: { target: { arity: 'many', about: 'the host, as given to pen allow or pen deny' } },
  examples: {
    'pen forget registry.example.com:443': 'remove the rules that allow or deny this host',
  },
  async run({ positionals, project, answer }) {
    const spelled = new Set(positionals.target.flatMap(text => [text, `${text}:443`]))
    for (const rule of await parseRules('deny', positionals.target)) spelled.add(printRule(rule))
    const forgotten: string[] = []
    const forget = async (): Promise<void> => {
      await editLiveConfig(project, config =>
        ['http', 'tcp', 'deny'].reduce(
          (edited, key) =>
            editNetworkList(edited, key, list => {
              const isMeant = (entry: Entry): boolean =>
                spelled.has(textOf(entry)) || spelled.has(canonical(key, textOf(entry)))
              const gone = list.filter(isMeant)
              forgotten.push(...gone.map(textOf))
              return gone.length === 0 ? list : list.filter(text => !isMeant(text))
            }),
          config,
        ),
      )
      const grants = await removeGrants(project.shared.stateDir, ({ rule }) => spelled.has(printRule(rule)))
      forgotten.push(...grants.map(({ rule }) => printRule(rule)))
    }
    await editAndWait(auditDirectories(project), forget)
    answer(
      { forgotten, project: project.world.workspace },
      forgotten.length === 0 ? 'no such rule' : `removed: ${forgotten.join(', ')}`,
    )
    return forgotten.length === 0 ? EXIT.failed : EXIT.ok
  },
})

/** With `"open": false` an entry is an object. */
type Entry = string | { readonly host: string }

const textOf = (entry: Entry): string => (typeof entry === 'string' ? entry : entry.host)

/** The spelling that verdicts use. */
function canonical(key: string, text: string): string {
  const rule = (key === 'deny' ? parseDenyRule : parseAllowRule)(text, everySuffixIsPublic)
  return rule.ok ? printRule(rule.value) : text
}
