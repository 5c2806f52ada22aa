/**
 * Compares two policies and marks each difference that lets a sandbox do more. A person approves a change by this list,
 * so a difference without the mark must never widen. `difference.property.test.ts` checks that against the verdicts.
 */
import { type Bytes, type Millis, showBytes, showMillis } from '../../base/quantity.ts'
import { ISOLATION_STRENGTH } from '../fields.ts'
import { isWithin } from '../files/path.ts'
import type { Policy } from '../policy.ts'
import type { EnvValue, Image, Mount, SettingKey } from '../settings.ts'
import type { Source } from '../source.ts'
import { PROFILE_NAMES } from '../vocabulary.ts'
import { compareFiles } from './files.ts'
import { compareNetwork } from './network.ts'
import { changed, compareNames, type Difference } from './row.ts'

export type { Difference } from './row.ts'

export function comparePolicies(before: Policy, after: Policy): Difference[] {
  return [
    ...compareChoices(before, after),
    ...compareFiles(before, after),
    ...compareNetwork(before, after),
    ...compareNumbers(before, after),
    ...compareEnvironment(before, after),
    ...compareMounts(before, after),
    ...compareTools(before, after),
    ...changed(
      'git.identity',
      [String(before.git.identity), String(after.git.identity)],
      after.git.identity,
      after,
    ),
    ...compareNames('ssh.agent', before.sshAgent, after.sshAgent),
    ...compareNames('acceptGaps', before.acceptGaps, after.acceptGaps),
    ...compareNames('ports', before.ports.map(showPort), after.ports.map(showPort)),
  ]
}

function compareChoices(before: Policy, after: Policy): Difference[] {
  const rises = <T>(order: readonly T[], from: T, to: T) => order.indexOf(to) > order.indexOf(from)
  const secretly = (key: SettingKey, differs: boolean, item: string): Difference[] =>
    differs
      ? [{ key, change: 'changed', item, was: undefined, widens: true, source: after.sources.get(key) }]
      : []
  // Each of these selects a program to trust, so every change counts as a widening.
  return [
    ...changed(
      'profile',
      [before.profile, after.profile],
      rises(PROFILE_NAMES, before.profile, after.profile),
      after,
    ),
    ...changed(
      'isolation',
      [before.isolation, after.isolation],
      rises(ISOLATION_STRENGTH, after.isolation, before.isolation),
      after,
    ),
    ...changed('backend', [before.backend, after.backend], true, after),
    ...changed('user', [before.user, after.user], true, after),
    ...changed('runtime', [before.runtime, after.runtime], true, after),
    ...secretly('image', showImage(before.image) !== showImage(after.image), showImage(after.image)),
    ...secretly(
      'network.upstreamProxy',
      before.network.upstreamProxy !== after.network.upstreamProxy,
      after.network.upstreamProxy ?? 'none',
    ),
  ]
}

function showImage(image: Image | 'default'): string {
  if (image === 'default') return image
  const { dockerfile, context, args, pull } = image
  return JSON.stringify({ dockerfile, context, args: Object.fromEntries(args), pull })
}

function compareNumbers(before: Policy, after: Policy): Difference[] {
  const number = (key: SettingKey, of: (policy: Policy) => number, show: (value: number) => string) =>
    of(before) === of(after)
      ? []
      : changed(key, [show(of(before)), show(of(after))], of(after) > of(before), after)
  const millis = (value: number) => showMillis(value as Millis)
  const bytes = (value: number) => showBytes(value as Bytes)
  return [
    ...number('network.hold', ({ network }) => network.hold, millis),
    ...number('network.idle', ({ network }) => network.idle, millis),
    ...number('exec.timeout', ({ exec }) => exec.timeout, millis),
    ...number('exec.ceiling', ({ exec }) => exec.ceiling, millis),
    ...number('exec.maxOutput', ({ exec }) => exec.maxOutput, bytes),
    ...number('limits.cpus', ({ limits }) => limits.cpus, String),
    ...number('limits.memory', ({ limits }) => limits.memory, bytes),
    ...number('limits.pids', ({ limits }) => limits.pids, String),
    ...number('limits.wall', ({ limits }) => limits.wall, millis),
    ...number('limits.disk', ({ limits }) => limits.disk, bytes),
    ...number('limits.output', ({ limits }) => limits.output, bytes),
    ...number('limits.files', ({ limits }) => limits.files, String),
  ]
}

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
  for (const name of before.env.keys())
    if (!after.env.has(name))
      out.push({
        key: 'env',
        change: 'removed',
        item: name,
        was: undefined,
        widens: false,
        source: undefined,
      })
  return out
}

function compareMounts(before: Policy, after: Policy): Difference[] {
  const of = ({ mounts }: Policy) => new Map(mounts.map(item => [showMount(item.rule), item]))
  const [had, has] = [of(before), of(after)]
  // Removing a mount uncovers the files beneath it.
  const uncovers = ({ at }: Mount) =>
    after.files.read.some(({ rule }) => isWithin(at, rule.path) || isWithin(rule.path, at))
  return [
    ...[...has]
      .filter(([text]) => !had.has(text))
      .map(([item, { source }]) => mountDifference('added', item, true, source)),
    ...[...had]
      .filter(([text]) => !has.has(text))
      .map(([item, { rule }]) => mountDifference('removed', item, uncovers(rule), undefined)),
  ]
}

const mountDifference = (
  change: 'added' | 'removed',
  item: string,
  widens: boolean,
  source: Source | undefined,
): Difference => ({ key: 'mounts', change, item, was: undefined, widens, source })

const showMount = (mount: Mount): string =>
  mount.kind === 'volume'
    ? `volume ${mount.volume} at ${mount.at}`
    : `${mount.host} at ${mount.at} (${mount.mode})`

const showPort = ({ rule }: Policy['ports'][number]): string => `${rule.guest} at ${rule.host} of the host`

function compareTools(before: Policy, after: Policy): Difference[] {
  const [had, has] = [before.tools, after.tools]
  const shown = (allow: typeof had.allow) =>
    allow === 'shown' ? 'all that the mounts show' : allow.join(', ')
  const lists =
    had.allow === 'shown' || has.allow === 'shown'
      ? changed('tools.allow', [shown(had.allow), shown(has.allow)], has.allow === 'shown', after)
      : compareNames('tools.allow', had.allow, has.allow)
  return [
    ...lists,
    ...changed('tools.shell', [String(had.shell), String(has.shell)], has.shell, after),
    ...changed('tools.exec', [had.exec, has.exec], has.exec === 'any', after),
  ]
}
