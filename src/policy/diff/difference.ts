/**
 * Compares two policies and marks each difference that lets a sandbox do more. A person approves a change by this list,
 * so a difference without the mark must never widen. `difference.property.test.ts` checks that against the verdicts.
 */
import { ISOLATION_STRENGTH } from '../fields.ts'
import { printSecret } from '../network/secret.ts'
import { NUMBER_KEYS, numberOf, showNumber } from '../numbers.ts'
import type { Policy } from '../policy.ts'
import {
  type EnvValue,
  type Image,
  NETWORK_MODES,
  PROFILE_NAMES,
  type SettingKey,
  showPort,
} from '../settings.ts'
import type { Source } from '../source.ts'
import { compareFiles, compareHosts, compareMounts, compareNames } from './compare-lists.ts'

export interface Difference {
  readonly key: SettingKey
  readonly change: 'added' | 'removed' | 'changed'
  /** The rule or the new value as text. It may come from a hostile file: escape it before display. */
  readonly item: string
  /** The previous value, if there was one and it cannot be a secret. */
  readonly was: string | undefined
  readonly widens: boolean
  /** The layer that set the new value. */
  readonly source: Source | undefined
}

export function comparePolicies(before: Policy, after: Policy): Difference[] {
  const ports = ({ ports }: Policy) => ports.map(({ rule }) => showPort(rule))
  const secrets = ({ network }: Policy) => network.secrets.map(({ rule }) => printSecret(rule))
  return [
    ...compareChoices(before, after),
    ...compareFiles(before, after),
    ...compareNetwork(before, after),
    ...compareNumbers(before, after),
    ...compareEnvironment(before, after),
    ...compareMounts(before, after),
    ...compareTools(before, after),
    ...changed(
      'workspace',
      before.workspaceMode,
      after.workspaceMode,
      after.workspaceMode === 'direct',
      after,
    ),
    ...changed('git.identity', before.git.identity, after.git.identity, after.git.identity, after),
    ...changed('vm.root', before.vm.root, after.vm.root, after.vm.root, after),
    ...(['keys', 'hosts', 'sign'] as const).flatMap(key =>
      compareNames(`ssh.agent.${key}`, before.sshAgent[key], after.sshAgent[key]),
    ),
    ...compareNames('acceptGaps', before.acceptGaps, after.acceptGaps),
    ...compareNames('ports', ports(before), ports(after)),
    ...compareNames('secrets', secrets(before), secrets(after)),
  ]
}

/** The difference of a single value; empty when it did not change. */
function changed(
  key: SettingKey,
  was: string | boolean,
  item: string | boolean,
  widens: boolean,
  after: Policy,
): Difference[] {
  const source = after.sources.get(key)
  return was === item
    ? []
    : [{ key, change: 'changed', item: String(item), was: String(was), widens, source }]
}

const rises = <T>(order: readonly T[], from: T, to: T) => order.indexOf(to) > order.indexOf(from)

function compareChoices(before: Policy, after: Policy): Difference[] {
  // Each of these selects a program to trust, so every change counts as a widening. The old value may be a secret.
  const secretly = (key: SettingKey, was: string, item: string): Difference[] =>
    changed(key, was, item, true, after).map(row => ({ ...row, was: undefined }))
  const profileRises = rises(PROFILE_NAMES, before.profile, after.profile)
  const isolationFalls = rises(ISOLATION_STRENGTH, after.isolation, before.isolation)
  return [
    ...changed('profile', before.profile, after.profile, profileRises, after),
    ...changed('isolation', before.isolation, after.isolation, isolationFalls, after),
    ...changed('backend', before.backend, after.backend, true, after),
    ...changed('user', before.user, after.user, true, after),
    ...changed('runtime', before.runtime, after.runtime, true, after),
    ...secretly('image', showImage(before.image), showImage(after.image)),
    ...secretly(
      'network.upstreamProxy',
      before.network.upstreamProxy ?? 'none',
      after.network.upstreamProxy ?? 'none',
    ),
  ]
}

function showImage(image: Image | 'default'): string {
  if (image === 'default') return image
  const { dockerfile, context, args, pull } = image
  return JSON.stringify({ dockerfile, context, args: Object.fromEntries(args), pull })
}

function compareNetwork(before: Policy, after: Policy): Difference[] {
  const [had, has] = [before.network, after.network]
  const words = (value: boolean) => (value ? 'yes' : 'no')
  return [
    ...changed('network.offline', words(had.offline), words(has.offline), !has.offline, after),
    ...changed('network.mode', had.mode, has.mode, rises(NETWORK_MODES, had.mode, has.mode), after),
    ...changed('network.ask', had.ask, has.ask, has.ask === 'hold', after),
    // A group also brings mirrors, which may resolve to private addresses.
    ...compareNames('network.groups', had.groups, has.groups),
    ...compareHosts(before, after),
  ]
}

const compareNumbers = (before: Policy, after: Policy): Difference[] =>
  NUMBER_KEYS.flatMap(key => {
    const [was, is] = [numberOf(before, key), numberOf(after, key)]
    return changed(key, showNumber(key, was), showNumber(key, is), is > was, after)
  })

/** Omits the old value, which may be a secret. The user approves the new one, so it is shown. */
function compareEnvironment(before: Policy, after: Policy): Difference[] {
  const text = (value: EnvValue) => (value.kind === 'host' ? " from the host's own" : `=${value.text}`)
  const out: Difference[] = []
  for (const [name, { value, source }] of after.env) {
    const had = before.env.get(name)
    if (had !== undefined && text(had.value) === text(value)) continue
    const change = had === undefined ? 'added' : 'changed'
    out.push({ key: 'env', change, item: `${name}${text(value)}`, was: undefined, widens: true, source })
  }
  const removed = [...before.env.keys()].filter(name => !after.env.has(name))
  return [...out, ...compareNames('env', removed, [])]
}

function compareTools(before: Policy, after: Policy): Difference[] {
  const [had, has] = [before.tools, after.tools]
  const shown = (allow: typeof had.allow) =>
    allow === 'shown' ? 'all that the mounts show' : allow.join(', ')
  const lists =
    had.allow === 'shown' || has.allow === 'shown'
      ? changed('tools.allow', shown(had.allow), shown(has.allow), has.allow === 'shown', after)
      : compareNames('tools.allow', had.allow, has.allow)
  return [
    ...lists,
    ...changed('tools.shell', had.shell, has.shell, has.shell, after),
    ...changed('tools.exec', had.exec, has.exec, has.exec === 'any', after),
  ]
}
