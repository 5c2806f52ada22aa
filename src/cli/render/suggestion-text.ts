/** A suggestion with the command that applies it. */
import { type AllowRule, listOf, printRule, ruleWord } from '../../policy/network/net-rule.ts'
import type { Learned } from '../frame/suggestion.ts'
import type { Paint } from './colour.ts'

export function suggestionText({ suggestion, groups, had }: Learned, paint: Paint): string {
  const { add, wildcards, withheld, denied } = suggestion
  const lines: string[] = []
  if (add.length === 0) lines.push('nothing to suggest: the rules allow every host that was used')
  else {
    lines.push('hosts that were used and are not permanently allowed; check them before you allow them:', '')
    for (const list of ['http', 'tcp'] as const) {
      const entries = add.filter(({ rule }) => listOf(rule) === list)
      if (entries.length === 0) continue
      lines.push(`  network.${list}`)
      for (const { rule, count } of entries)
        lines.push(paint('green', `  + ${printRule(rule)}${count > 1 ? `  (${count} times)` : ''}`))
    }
    lines.push('', 'to allow exactly these:', `  ${paint('bold', allowCommand(add.map(({ rule }) => rule)))}`)
  }
  if (wildcards.length + groups.length > 0) lines.push('', 'shorter, but wider than what was used:')
  for (const { rule, covers } of wildcards)
    lines.push(`  ${allowCommand([rule])}  (covers ${covers} of these, and every other subdomain)`)
  for (const { name, covers } of groups)
    lines.push(`  ${groupCommand(name, had)}  (covers ${covers} of these; see pen groups ${name})`)
  if (withheld.length > 0)
    lines.push('', 'not suggested, because they belong to this machine, its network or its cloud:')
  for (const { target, fix } of withheld) lines.push(`  ${target}  ${fix}`)
  if (denied.length > 0) lines.push('', 'denied by your rules:')
  for (const { target, fix } of denied) lines.push(`  ${target}  ${fix}`)
  return lines.join('\n')
}

export const suggestionData = ({
  suggestion: { add, wildcards, withheld, denied },
  groups,
  had,
}: Learned) => ({
  version: 1,
  add: add.map(({ rule, count }) => ({ key: `network.${listOf(rule)}`, rule: printRule(rule), count })),
  command: add.length === 0 ? null : allowCommand(add.map(({ rule }) => rule)),
  alternatives: [
    ...wildcards.map(({ rule, covers }) => ({
      rule: printRule(rule),
      covers,
      command: allowCommand([rule]),
    })),
    ...groups.map(({ name, covers }) => ({ group: name, covers, command: groupCommand(name, had) })),
  ],
  withheld,
  denied,
})

/** Quotes rules with characters that a shell expands. */
const allowCommand = (rules: readonly AllowRule[]): string => `pen allow ${rules.map(ruleWord).join(' ')}`

const groupCommand = (name: string, had: readonly string[]): string =>
  `pen config set network.groups ${[...had, name].join(' ')}`
