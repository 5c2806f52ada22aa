/**
 * Everything a policy lets a sandbox do, over a small universe, as a set of words. Two policies compare as two
 * sets.
 */
import { explainConnection } from '../../src/policy/explain.ts'
import { decideFile } from '../../src/policy/files/decide-file.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { ENDPOINTS, PATHS } from './layer.ts'

const ORDER = {
  profile: ['strict', 'coding', 'dev'],
  isolation: ['vm', 'gvisor', 'container', 'auto', 'process', 'soft'],
  mode: ['none', 'gateway', 'bridge'],
  ask: ['never', 'hold'],
  workspace: ['review', 'direct'],
  exec: ['listed', 'any'],
} as const

/** Each step up a ladder is one power, so a policy that narrows only shrinks the set. */
const ladder = (name: string, order: readonly string[], value: string): string[] =>
  order.slice(0, order.indexOf(value) + 1).map(step => `${name} up to ${step}`)

export function powersOf(policy: Policy): ReadonlySet<string> {
  const { network, tools } = policy
  const connections = ENDPOINTS.filter(text => {
    const explained = explainConnection(policy, text)
    if (!explained.ok) throw new Error(`${text}: ${explained.why}`)
    return explained.value.verdict === 'allowed'
  })
  return new Set([
    ...connections.map(text => `connect ${text}`),
    ...PATHS.filter(path => decideFile(policy, path, 'read').ok).map(path => `read ${path}`),
    ...PATHS.filter(path => decideFile(policy, path, 'write').ok).map(path => `write ${path}`),
    ...[...policy.env].map(([name, { value }]) => `env ${name} ${JSON.stringify(value)}`),
    ...policy.mounts.flatMap(({ rule }) =>
      rule.kind === 'volume'
        ? [`volume ${rule.volume} at ${rule.at}`]
        : [`mount ${rule.host} at ${rule.at}`, ...(rule.mode === 'rw' ? [`rw at ${rule.at}`] : [])],
    ),
    ...(tools.allow === 'shown' ? ['git', 'npm', 'anything'] : tools.allow).map(tool => `tool ${tool}`),
    ...(tools.shell ? ['shell'] : []),
    ...(policy.git.identity ? ['identity'] : []),
    ...(policy.vm.root ? ['root'] : []),
    ...(['keys', 'hosts', 'sign'] as const).flatMap(key =>
      policy.sshAgent[key].map(text => `ssh-${key} ${text}`),
    ),
    ...policy.acceptGaps.map(gap => `accept ${gap}`),
    ...policy.ports.map(({ rule }) => `port ${rule.guest} ${rule.host}`),
    ...network.groups.map(group => `group ${group}`),
    ...(network.offline ? [] : ['online']),
    ...ladder('mode', ORDER.mode, network.mode),
    ...ladder('ask', ORDER.ask, network.ask),
    ...ladder('profile', ORDER.profile, policy.profile),
    ...ladder('isolation', ORDER.isolation, policy.isolation),
    ...ladder('workspace', ORDER.workspace, policy.workspaceMode),
    ...ladder('exec', ORDER.exec, tools.exec),
    // Belongs to the user alone: any other value would be a new power.
    `backend ${policy.backend}`,
    `image ${JSON.stringify(policy.image)}`,
    `user ${policy.user}`,
    `runtime ${policy.runtime}`,
    `proxy ${network.upstreamProxy}`,
  ])
}

export const numbersOf = (policy: Policy): Readonly<Record<string, number>> => ({
  ...policy.limits,
  ...policy.exec,
  hold: policy.network.hold,
  idle: policy.network.idle,
})

/** The powers of `after` that `before` does not have. */
export function newPowers(after: Policy, before: Policy): string[] {
  const had = powersOf(before)
  const numbers = numbersOf(before)
  return [
    ...[...powersOf(after)].filter(power => !had.has(power)),
    ...Object.entries(numbersOf(after))
      .filter(([name, value]) => value > (numbers[name] ?? 0))
      .map(([name, value]) => `${name} ${value}`),
  ]
}

/**
 * The keys of a document that give a power, by the power's first word. Files, variables and connections are
 * compared elsewhere.
 */
export const KEYS_OF_POWERS: Readonly<Record<string, readonly string[]>> = {
  online: ['network.offline'],
  mode: ['network.mode'],
  ask: ['network.ask'],
  proxy: ['network.upstreamProxy'],
  hold: ['network.hold'],
  idle: ['network.idle'],
  group: ['network.groups'],
  volume: ['mounts'],
  mount: ['mounts'],
  rw: ['mounts'],
  tool: ['tools.allow'],
  shell: ['tools.shell'],
  identity: ['git.identity'],
  root: ['vm.root'],
  exec: ['tools.exec'],
  'ssh-keys': ['ssh.agent.keys'],
  'ssh-hosts': ['ssh.agent.hosts'],
  'ssh-sign': ['ssh.agent.sign'],
  accept: ['acceptGaps'],
  port: ['ports'],
  profile: ['profile'],
  isolation: ['isolation'],
  backend: ['backend'],
  workspace: ['workspace'],
  image: ['image'],
  user: ['user'],
  runtime: ['runtime'],
}
