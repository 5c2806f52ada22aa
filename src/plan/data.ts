/** A policy and a plan as plain data, for machines and for the text in `show.ts`. It never contains a value that may be secret. */
import { showDeny } from '../policy/files/decide-file.ts'
import { printRule } from '../policy/network/net-rule.ts'
import { printSecret } from '../policy/network/secret.ts'
import { openedHosts } from '../policy/network/unopened.ts'
import { NUMBER_KEYS, type NumberKey, numberOf, showNumber } from '../policy/numbers.ts'
import type { Policy } from '../policy/policy.ts'
import type { SettingKey } from '../policy/settings.ts'
import { type Sourced, showSource } from '../policy/source.ts'
import { isHarmless } from './environment.ts'
import type { Plan } from './plan.ts'

const REDACTED = '<redacted>'

/** Everything that is in force, with its source. */
export function policyData(policy: Policy) {
  const list = <T>(items: readonly Sourced<T>[], show: (rule: T) => string) =>
    items.map(({ rule, source }) => ({ rule: show(rule), from: showSource(source) }))
  const at = (key: SettingKey): string => {
    const source = policy.sources.get(key)
    return source === undefined ? 'default: deny' : showSource(source)
  }
  const number = (key: NumberKey) => showNumber(key, numberOf(policy, key))
  const { network } = policy
  return {
    profile: { value: policy.profile, from: at('profile') },
    workspaceMode: { value: policy.workspaceMode, from: at('workspace') },
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
      hold: { value: number('network.hold'), from: at('network.hold') },
      idle: { value: number('network.idle'), from: at('network.idle') },
      upstreamProxy: network.upstreamProxy === null ? null : redactUrl(network.upstreamProxy),
      groups: network.groups,
      allow: list(network.allow, printRule),
      deny: list(network.deny, printRule),
      secrets: list(network.secrets, printSecret),
      opened: openedHosts(network),
      unopened: list(
        network.allow.filter(({ rule }) => rule.open === false),
        printRule,
      ),
    },
    exec: {
      timeout: number('exec.timeout'),
      ceiling: number('exec.ceiling'),
      maxOutput: number('exec.maxOutput'),
    },
    limits: Object.fromEntries(
      NUMBER_KEYS.filter(key => key.startsWith('limits.')).map(key => [
        key.slice('limits.'.length),
        { value: number(key), from: at(key) },
      ]),
    ),
    env: [...policy.env].map(([name, { value, source }]) => ({
      name,
      value: value.kind === 'host' ? "<the host's>" : isHarmless(name, value.text) ? value.text : REDACTED,
      from: showSource(source),
    })),
    mounts: policy.mounts.map(({ rule, source }) => ({ ...rule, from: showSource(source) })),
    image:
      policy.image === 'default' ? policy.image : { ...policy.image, args: [...policy.image.args.keys()] },
    tools: policy.tools,
    git: policy.git,
    vm: policy.vm,
    user: policy.user,
    runtime: policy.runtime,
    sshAgent: policy.sshAgent,
    acceptGaps: policy.acceptGaps,
    ports: policy.ports.map(({ rule, source }) => ({ ...rule, from: showSource(source) })),
  }
}

/** The exact steps of the plan, without the values of variables that may be secret. */
export function planData(plan: Plan) {
  const { env, ...rest } = plan
  return {
    ...rest,
    env: env.map(({ name, value, secret }) => ({ name, value: secret ? REDACTED : value })),
  }
}

/** Keeps scheme, host and port. The other parts may hold a password. */
export function redactUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return REDACTED
  const hidden = url.username !== '' || url.password !== '' ? `${REDACTED}@` : ''
  return `${url.protocol}//${hidden}${url.host}`
}
