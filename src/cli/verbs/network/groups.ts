import { showPlace } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import type { ResolvedGroup } from '../../../config/groups.ts'
import { resolveGroup } from '../../../config/groups.ts'
import { findProject } from '../../../config/project.ts'
import { GROUPS, type Group } from '../../../policy/network/groups.ts'
import { printRule } from '../../../policy/network/net-rule.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'groups',
  summary: 'List host groups, or show the hosts of one group',
  details:
    "Package manager groups follow that tool's user and system config, never project files. Use --group or network.groups.",
  positionals: { name: { arity: 'optional', about: 'the group to show' } },
  examples: {
    'pen groups': 'list all groups with version and purpose',
    'pen groups github': 'list the hosts of one group, each with its reason',
    'pen run --group github -- git fetch': 'allow a group for one run',
  },
  async run({ positionals: { name }, answer }) {
    if (name === undefined) {
      const groups = Object.entries(GROUPS).map(([id, group]) => ({ name: id, ...summary(group) }))
      const lines = groups.map(row => `${row.name.padEnd(14)} v${row.version}  ${row.reason}`)
      answer({ version: 1, groups }, lines)
      return
    }
    const { home, state, workspace } = findProject().world
    const resolved = await resolveGroup(name, { home, writable: [workspace], cacheDir: `${state}/cache` })
    const group = summary(GROUPS[name as keyof typeof GROUPS])
    const hosts = rows(resolved)
    answer(
      { version: 1, group: { name, ...group, hosts } },
      [`${name} v${group.version}: ${group.reason}`, ...hosts.map(hostLine)].map(line =>
        printable(line, 4096),
      ),
    )
  },
})

const summary = ({ version, reason, follows }: Group) => ({ version, reason, follows: follows ?? null })

const rows = ({ rules }: ResolvedGroup) =>
  rules.map(({ rule, source }) => ({
    rule: printRule(rule),
    reason: source.note ?? '',
    at: source.place === undefined ? null : showPlace(source.place),
  }))

const hostLine = ({ rule, reason }: { rule: string; reason: string }): string =>
  `  ${rule.padEnd(36)}  ${reason}`
