import { printable } from '../../../base/printable.ts'
import { loadPolicy } from '../../../config/load.ts'
import { printPlaces, printSecretHost, printSource } from '../../../policy/network/secret.ts'
import { showSource } from '../../../policy/source.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'secret list',
  summary: 'List secrets: source, hosts, header fields',
  details: 'Values are never shown. pen secret test reads one.',
  examples: { 'pen secret list': 'where each secret comes from, and where it may go' },
  async run({ project, answer }) {
    const { policy } = await loadPolicy(project, { flags: {}, offline: false, allowUserExpansion: false })
    const secrets = policy.network.secrets.map(({ rule, source }) => ({
      name: rule.name,
      from: printSource(rule.from),
      to: rule.to.map(printSecretHost),
      in: printPlaces(rule),
      source: showSource(source),
    }))
    const lines = secrets.flatMap(({ name, from, to, in: places }) => [
      printable(`${name}: from ${from}`, 1024),
      printable(`  to ${to.join(', ')}, in ${places}`, 1024),
    ])
    answer({ version: 1, secrets }, lines.length === 0 ? 'no secrets; add one: pen secret add' : lines)
  },
})
