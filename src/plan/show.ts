/** A policy, with the source of each part, and a plan as text. Values that may be secret are never shown. */
import { printable } from '../base/printable.ts'
import { showBytes } from '../base/quantity.ts'
import type { Expansion, Merged } from '../policy/merge.ts'
import { type AllowRule, printRule } from '../policy/network/net-rule.ts'
import { isNumberKey, showNumber } from '../policy/numbers.ts'
import type { Policy } from '../policy/policy.ts'
import { type PathGrant, type SettingKey, showPort } from '../policy/settings.ts'
import { planData, policyData } from './data.ts'
import type { Plan, Step } from './plan.ts'

export const showExpansion = ({ key, layer, item }: Expansion): string =>
  `${layer}: ${key} ${showItem(key, item)}`

function showItem(key: SettingKey, item: unknown): string {
  if (key === 'files.read' || key === 'files.write') return (item as PathGrant).path
  if (key === 'network.http' || key === 'network.tcp') return printRule(item as AllowRule)
  if (isNumberKey(key)) return showNumber(key, item as number)
  return key === 'env' ? String(item) : typeof item === 'string' ? item : JSON.stringify(item)
}

type Row = { readonly rule: string; readonly from: string }

/** The effect of the project's document, for the launch line and the plan. */
export function projectDocument({ layers, expanded }: Pick<Merged, 'layers' | 'expanded'>) {
  if (!layers.some(layer => layer.trust === 'untrusted')) return 'absent'
  return expanded.length > 0 ? 'expanded' : 'restricted'
}

const DOCUMENT_WORDS = {
  absent: 'absent',
  restricted: 'only restricts',
  expanded: 'added, with your permission:',
} as const

/** `network` is the network on the chosen backend, if that is known. */
export function policyText(
  policy: Policy,
  { layers, expanded }: Pick<Merged, 'layers' | 'expanded'>,
  network: string = policy.network.offline ? 'none, it is offline' : policy.network.mode,
): string {
  const data = policyData(policy)
  const out: string[] = []
  const say = (line: string) => out.push(printable(line, 4096))
  const rows = (title: string, items: readonly Row[]) => {
    say(`  ${title}:${items.length === 0 ? ' none' : ''}`)
    for (const { rule, from } of items) say(`    ${rule.padEnd(36)}  ${from}`)
  }
  say(`policy for ${policy.workspace}`)
  say(`  layers: ${[...new Set(layers.map(layer => layer.name))].join(', ')}`)
  say(`  profile: ${data.profile.value}  (${data.profile.from})`)
  if (data.workspaceMode.value === 'review')
    say(`  workspace: review: writes go to a layer until you accept them  (${data.workspaceMode.from})`)
  say(`  agent-permissions.json: ${DOCUMENT_WORDS[projectDocument({ layers, expanded })]}`)
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
    say(`    and ${builtIn.length} places that the host would run or trust: see docs/protected-paths.md`)
  say(`  network: ${network}`)
  if (data.network.groups.length > 0) say(`  groups: ${data.network.groups.join(', ')}`)
  rows('allow', data.network.allow)
  rows('deny', data.network.deny)
  if (data.network.secrets.length > 0) rows('secrets', data.network.secrets)
  if (data.network.opened.length > 0) rows('TLS is opened for', data.network.opened)
  if (data.network.unopened.length > 0) rows('TLS is never opened for', data.network.unopened)
  if (data.network.upstreamProxy !== null) say(`  upstream proxy: ${data.network.upstreamProxy}`)
  say('  limits:')
  for (const [name, { value, from }] of Object.entries(data.limits))
    say(`    ${`${name} ${value}`.padEnd(36)}  ${from}`)
  rows(
    'env',
    data.env.map(({ name, value, from }) => ({ rule: `${name}=${value}`, from })),
  )
  rows(
    'ports',
    data.ports.map(port => ({ rule: showPort(port), from: port.from })),
  )
  const { shell, allow, exec } = data.tools
  say(`  tools: ${allow === 'shown' ? 'all that the mounts show' : allow.join(', ') || 'none'}`)
  say(`  shell: ${shell ? 'yes' : 'no'}, exec: ${exec}`)
  say(`  one command: ${data.exec.timeout}, at most ${data.exec.ceiling}, ${data.exec.maxOutput} of output`)
  return out.join('\n')
}

/** Settings that a plan shows as steps, for commands that have only the policy. */
export function settingsText(policy: Policy): string {
  const { isolation, backend, mounts, image, user, runtime, sshAgent, acceptGaps, network } =
    policyData(policy)
  const list = (items: readonly string[]) => (items.length === 0 ? 'none' : items.join(', '))
  return [
    `  isolation: ${isolation.value}  (${isolation.from}), backend: ${backend}`,
    `  mounts:${mounts.length === 0 ? ' none' : ''}`,
    ...mounts.map(mount => {
      const what = mount.kind === 'volume' ? `volume ${mount.volume}` : `${mount.host} (${mount.mode})`
      return `    ${`${what} at ${mount.at}`.padEnd(36)}  ${mount.from}`
    }),
    `  image: ${image === 'default' ? image : image.dockerfile}, runtime: ${runtime}, user: ${user}`,
    `  ssh keys: ${list(sshAgent.keys)}${sshAgent.keys.length === 0 ? '' : `; for ${list([...sshAgent.hosts, ...sshAgent.sign.map(purpose => `signatures: ${purpose}`)])}`}`,
    `  accepted gaps: ${list(acceptGaps)}`,
    `  a refused connection: ${network.ask.value === 'hold' ? `waits ${network.hold.value} for you` : 'is refused at once'}, an idle one is kept ${network.idle.value}`,
  ]
    .map(line => printable(line, 4096))
    .join('\n')
}

export function showStep(step: Step): string {
  switch (step.op) {
    case 'bind':
      return `bind ${step.mode} ${step.at}${(step.from as string) === step.at ? '' : ` from ${step.from}`}  (${step.why})`
    case 'tmpfs':
      return `tmpfs ${step.at}  (private, ${showBytes(step.size)})`
    case 'cover':
      return `cover ${step.at}  (denied by ${step.why}${step.passable ? '; grants below it are shown' : ''})`
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

export function planText(policy: Policy, plan: Plan, merged: Pick<Merged, 'layers' | 'expanded'>): string {
  const { network } = plan
  const out = [policyText(policy, merged, network.kind === 'none' ? `none, ${network.why}` : network.kind)]
  const say = (line: string) => out.push(printable(line, 4096))
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
