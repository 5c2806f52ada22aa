/** A plan and the policy behind it, for people and for machines. Values that may be secrets are never shown. */
import { printable } from '../base/printable.ts'
import { showBytes, showMillis } from '../base/quantity.ts'
import { showDeny } from '../policy/decide-file.ts'
import type { Expansion } from '../policy/merge.ts'
import { type AllowRule, printRule } from '../policy/net-rule.ts'
import type { Policy } from '../policy/policy.ts'
import type { PathGrant, SettingKey } from '../policy/settings.ts'
import { type Source, type Sourced, showSource } from '../policy/source.ts'
import type { Plan, Step } from './plan.ts'

const REDACTED = '<redacted>'

/** Everything that is in force and where it came from, as plain data. */
export function policyData(policy: Policy) {
  const list = <T>(items: readonly Sourced<T>[], show: (rule: T) => string) =>
    items.map(({ rule, source }) => ({ rule: show(rule), from: showSource(source) }))
  const at = (key: SettingKey): string => {
    const source: Source | undefined = policy.sources.get(key)
    return source === undefined ? 'default: deny' : showSource(source)
  }
  const { network, limits } = policy
  return {
    profile: { value: policy.profile, from: at('profile') },
    isolation: { value: policy.isolation, from: at('isolation') },
    backend: policy.backend,
    workspace: policy.workspace,
    files: {
      read: list(policy.files.read, rule => rule.path),
      write: list(policy.files.write, rule => rule.path),
      deny: list(policy.files.deny, showDeny),
      protect: list(policy.files.protect, rule => rule.path),
    },
    network: {
      mode: { value: network.mode, from: at('network.mode') },
      offline: { value: network.offline, from: at('network.offline') },
      ask: { value: network.ask, from: at('network.ask') },
      idle: { value: showMillis(network.idle), from: at('network.idle') },
      upstreamProxy: network.upstreamProxy === null ? null : redactUrl(network.upstreamProxy),
      groups: network.groups,
      allow: list(network.allow, printRule),
      deny: list(network.deny, printRule),
    },
    exec: {
      timeout: showMillis(policy.exec.timeout),
      ceiling: showMillis(policy.exec.ceiling),
      maxOutput: showBytes(policy.exec.maxOutput),
    },
    limits: {
      cpus: { value: String(limits.cpus), from: at('limits.cpus') },
      memory: { value: showBytes(limits.memory), from: at('limits.memory') },
      pids: { value: String(limits.pids), from: at('limits.pids') },
      wall: { value: showMillis(limits.wall), from: at('limits.wall') },
      disk: { value: showBytes(limits.disk), from: at('limits.disk') },
      output: { value: showBytes(limits.output), from: at('limits.output') },
      files: { value: String(limits.files), from: at('limits.files') },
    },
    env: [...policy.env].map(([name, { value, source }]) => ({
      name,
      value: value.kind === 'host' ? "<the host's>" : REDACTED,
      from: showSource(source),
    })),
    mounts: policy.mounts.map(({ rule, source }) => ({ ...rule, from: showSource(source) })),
    tools: policy.tools,
    user: policy.user,
    acceptGaps: policy.acceptGaps,
  }
}

/** The plan as data: the exact steps, with the values of variables that may be secret left out. */
export function planData(plan: Plan) {
  const { env, ...rest } = plan
  return {
    ...rest,
    env: env.map(({ name, value, secret }) => ({ name, value: secret ? REDACTED : value })),
  }
}

export const redactUrl = (text: string): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return REDACTED
  if (url.username !== '' || url.password !== '') {
    url.username = 'redacted'
    url.password = ''
  }
  return url.href
}

export const showExpansion = ({ key, layer, item }: Expansion): string =>
  `${layer} added ${key}: ${showItem(key, item)}`

function showItem(key: SettingKey, item: unknown): string {
  if (key === 'files.read' || key === 'files.write') return (item as PathGrant).path
  if (key === 'network.http' || key === 'network.tcp') return printRule(item as AllowRule)
  return key === 'env' ? String(item) : typeof item === 'string' ? item : JSON.stringify(item)
}

export function showStep(step: Step): string {
  switch (step.op) {
    case 'bind':
      return `bind ${step.mode} ${step.at}${(step.from as string) === step.at ? '' : ` from ${step.from}`}  (${step.why})`
    case 'tmpfs':
      return `tmpfs ${step.at}  (private, ${showBytes(step.size)})`
    case 'cover':
      return `cover ${step.at}  (denied by ${step.why})`
    case 'file':
      return `file ${step.at}  (pen's own)`
    case 'link':
      return `link ${step.at} -> ${step.to}`
    case 'devices':
      return `devices ${step.at}`
    case 'processes':
      return `processes ${step.at}`
    case 'seal':
      return `seal ${step.at}  (read-only from here)`
  }
}

type Row = { readonly rule: string; readonly from: string }

export function planText(
  policy: Policy,
  plan: Plan,
  expanded: readonly Expansion[],
  layers: readonly string[],
): string {
  const data = policyData(policy)
  const out: string[] = []
  const say = (line: string) => out.push(printable(line, 4096))
  const rows = (title: string, items: readonly Row[]) => {
    say(`  ${title}:${items.length === 0 ? ' none' : ''}`)
    for (const { rule, from } of items) say(`    ${rule.padEnd(36)} ${from}`)
  }
  say(`policy for ${policy.workspace}`)
  say(`  layers: ${layers.join(' < ')}`)
  say(`  profile: ${data.profile.value}  (${data.profile.from})`)
  say(`  user config: ${expanded.length > 0 ? 'expanded' : 'restricts only'}`)
  for (const expansion of expanded) say(`    ${showExpansion(expansion)}`)
  rows('read', data.files.read)
  rows('write', data.files.write)
  rows('deny', data.files.deny)
  const builtIn = data.files.protect.filter(row => row.from.startsWith('profile '))
  rows(
    'protect',
    data.files.protect.filter(row => !builtIn.includes(row)),
  )
  if (builtIn.length > 0)
    say(
      `    and ${builtIn.length} places from which the host would run something: see docs/protected-paths.md`,
    )
  say(`  network: ${plan.network.kind === 'none' ? `none, ${plan.network.why}` : plan.network.kind}`)
  rows('allow', data.network.allow)
  rows('deny', data.network.deny)
  if (data.network.upstreamProxy !== null) say(`  upstream proxy: ${data.network.upstreamProxy}`)
  say('  limits:')
  for (const [name, { value, from }] of Object.entries(data.limits))
    say(`    ${`${name} ${value}`.padEnd(36)} ${from}`)
  rows(
    'env',
    data.env.map(({ name, value, from }) => ({ rule: `${name}=${value}`, from })),
  )
  say(`plan for backend ${plan.backend}, isolation ${plan.isolation}`)
  say(`  user inside: ${plan.user.uid}:${plan.user.gid}`)
  say(`  command: ${plan.argv.join(' ')}`)
  say(`  in: ${plan.cwd}`)
  for (const step of plan.steps) say(`  ${showStep(step)}`)
  for (const { name, value } of planData(plan).env) say(`  env ${name}=${value}`)
  if (plan.watch.length > 0) say(`  watched, because absent now: ${plan.watch.length} protected places`)
  say(`gaps:${plan.gaps.length === 0 ? ' none' : ''}`)
  for (const gap of plan.gaps)
    say(`  ${gap.name}: ${gap.why}${policy.acceptGaps.includes(gap.name) ? '  (accepted)' : ''}`)
  for (const { name, how } of plan.weaker) say(`weaker: ${name}: ${how}`)
  for (const note of plan.notes) say(`note: ${note}`)
  return out.join('\n')
}
