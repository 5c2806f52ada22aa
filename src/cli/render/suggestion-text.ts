/** A suggestion for a person to read before anything is opened, with the command that would do it. */
import { type AllowRule, listOf, printRule } from '../../policy/network/net-rule.ts'
import type { Suggestion } from '../../policy/network/suggest.ts'
import type { GroupOffer } from '../frame/suggestion.ts'
import type { Paint } from './colour.ts'

export function suggestionText(
  suggestion: Suggestion,
  groups: readonly GroupOffer[],
  had: readonly string[],
  paint: Paint,
): string {
  const { add, wildcards, withheld, denied } = suggestion
  const lines: string[] = []
  if (add.length === 0) lines.push('nothing to suggest: no rule is missing for what was dialled')
  else {
    lines.push('what was dialled and is not allowed for good; read it before you open it:', '')
    for (const list of ['http', 'tcp'] as const) {
      const entries = add.filter(({ rule }) => listOf(rule) === list)
      if (entries.length === 0) continue
      lines.push(`  network.${list}`)
      for (const { rule, count } of entries)
        lines.push(paint('green', `  + ${printRule(rule)}${count > 1 ? `  (${count} times)` : ''}`))
    }
    lines.push('', 'to allow exactly this:', `  ${paint('bold', allowCommand(add.map(({ rule }) => rule)))}`)
  }
  if (wildcards.length + groups.length > 0) lines.push('', 'shorter, and wider than what was dialled:')
  for (const { rule, covers } of wildcards)
    lines.push(`  ${allowCommand([rule])}  (for ${covers} of these, and every other name under it)`)
  for (const { name, covers } of groups)
    lines.push(`  ${groupCommand(name, had)}  (for ${covers} of these: see pen groups ${name})`)
  if (withheld.length > 0)
    lines.push('', 'not suggested, because it is of this machine, its network or its cloud:')
  for (const { target, fix } of withheld) lines.push(`  ${target}  ${fix}`)
  if (denied.length > 0) lines.push('', 'denied by a rule of yours:')
  for (const { target, fix } of denied) lines.push(`  ${target}  ${fix}`)
  return lines.join('\n')
}

export const suggestionData = (
  { add, wildcards, withheld, denied }: Suggestion,
  groups: readonly GroupOffer[],
  had: readonly string[],
) => ({
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

/** A star is a shell's. */
const allowCommand = (rules: readonly AllowRule[]): string =>
  `pen allow ${rules.map(rule => (rule.kind === 'wildcard' || printRule(rule).includes('[') ? `'${printRule(rule)}'` : printRule(rule))).join(' ')}`

const groupCommand = (name: string, had: readonly string[]): string =>
  `pen config set network.groups ${[...had, name].join(' ')}`
