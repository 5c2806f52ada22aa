/**
 * Merges two layers, setting by setting. One table defines two operations:
 *
 * - `grow` folds trusted layers in order. Later values win, lists add up, and an empty list removes earlier entries.
 * - `narrow` applies an untrusted layer. Grants intersect, denials unite, limits take the smaller value. No connection
 *   or file is allowed after it that was denied before.
 *
 * `grow` is associative. `narrow` by two layers gives the same result in either order.
 *
 * `merge.property.test.ts` checks these properties.
 */
import type { Bytes, Millis } from '../base/quantity.ts'
import { isWithin } from './files/path.ts'
import { type AllowRule, type DenyRule, intersect, overlapping } from './network/net-rule.ts'
import type { Secret } from './network/secret.ts'
import {
  type BackendName,
  type EnvValue,
  type FileDenyRule,
  type Image,
  type Isolation,
  type List,
  type Mount,
  NETWORK_MODES,
  type PathGrant,
  type PortForward,
  PROFILE_NAMES,
  type ProtectRule,
  type SettingKey,
  type Settings,
  WORKSPACE_MODES,
} from './settings.ts'
import type { Setting, Sourced } from './source.ts'

export interface Field<T> {
  grow(earlier: T, later: T): T
  /** `granted` is undefined when no trusted layer set the value. */
  narrow(granted: T | undefined, limit: T): T | undefined
}

const laterWins = <T>(_earlier: T, later: T): T => later

/**
 * A single value with an order. An untrusted layer may only make it stricter. A value that no trusted layer set stays unset,
 * because its zero value is the strictest one.
 */
function ordered<T>(tighter: (a: T, b: T) => boolean): Field<Setting<T>> {
  return {
    grow: laterWins,
    narrow: (granted, limit) =>
      granted !== undefined && tighter(limit.value, granted.value) ? limit : granted,
  }
}

const smaller = <T extends number>(): Field<Setting<T>> => ordered((a, b) => a < b)
const words = <const T>(order: readonly T[]): Field<Setting<T>> =>
  ordered((a, b) => order.indexOf(a) < order.indexOf(b))

/** A value that only the user may choose. An untrusted layer's value is ignored. */
const usersOnly = <T>(): Field<Setting<T>> => ({ grow: laterWins, narrow: granted => granted })

const addUp = <T>(earlier: List<T>, later: List<T>): List<T> =>
  later.clear ? later : { clear: earlier.clear, items: [...earlier.items, ...later.items] }

/** A list of grants: the result is what both layers grant. `near` avoids comparing every pair of two long lists. */
function grants<T>(
  both: (granted: T, limit: T) => T | undefined,
  near: (limits: readonly T[]) => (granted: T) => readonly T[] = limits => () => limits,
): Field<List<T>> {
  return {
    grow: addUp,
    narrow: (granted, limit) => {
      if (granted === undefined) return undefined
      // Deduplicated: an untrusted document with repeated entries must not multiply the lists.
      const items = new Map<string, Sourced<T>>()
      const limitsOf = near(limit.items.map(item => item.rule))
      for (const { rule, source } of granted.items)
        for (const other of limitsOf(rule)) {
          const kept = both(rule, other)
          const key = kept === undefined ? undefined : JSON.stringify(kept)
          if (kept !== undefined && key !== undefined && !items.has(key))
            items.set(key, { rule: kept, source })
        }
      return { clear: granted.clear, items: [...items.values()] }
    },
  }
}

/** A list of denials: the result is what either layer denies. An empty untrusted list adds no denial. */
const denials = <T>(): Field<List<T>> => ({
  grow: addUp,
  narrow: (granted, limit) => {
    // A temporary denial does not replace a permanent one.
    const lasting = granted?.items.filter(({ source }) => source.temporary === undefined)
    const known = new Set(lasting?.map(({ rule }) => JSON.stringify(rule)))
    const fresh = limit.items.filter(({ rule }) => !known.has(JSON.stringify(rule)))
    return { clear: granted?.clear ?? false, items: [...(granted?.items ?? []), ...fresh] }
  },
})

const same = <T>(a: T, b: T): T | undefined => (a === b ? a : undefined)

/** The deeper of two nested paths, with the rank of the user's grant. */
function deeper(granted: PathGrant, limit: PathGrant): PathGrant | undefined {
  if (isWithin(limit.path, granted.path)) return { path: limit.path, rank: granted.rank }
  return isWithin(granted.path, limit.path) ? granted : undefined
}

function sameMount(granted: Mount, limit: Mount): Mount | undefined {
  if (granted.at !== limit.at || granted.kind !== limit.kind) return undefined
  if (granted.kind === 'volume')
    return limit.kind === 'volume' && granted.volume === limit.volume ? granted : undefined
  if (limit.kind !== 'host' || granted.host !== limit.host) return undefined
  return limit.mode === 'ro' ? { ...granted, mode: 'ro' } : granted
}

const samePort = (a: PortForward, b: PortForward) =>
  a.guest === b.guest && a.host === b.host ? a : undefined

/** Keeps the names that both layers list. The value is the user's, because a value can be a grant too (`LD_PRELOAD`). */
const environment: Field<ReadonlyMap<string, Setting<EnvValue>>> = {
  grow: (earlier, later) => new Map([...earlier, ...later]),
  narrow: (granted, limit) => granted && new Map([...granted].filter(([name]) => limit.has(name))),
}

const tools: Field<List<string>> = {
  ...grants<string>(same),
  // An absent list means every mounted program, so the first list restricts.
  narrow: (granted, limit) => (granted === undefined ? limit : grants<string>(same).narrow(granted, limit)),
}

const netGrants = grants<AllowRule>(intersect, overlapping)

/** Weakest first. "auto" is at least "process", and may be more: see `backend/probe.ts`. */
export const ISOLATION_STRENGTH: readonly Isolation[] = [
  'soft',
  'process',
  'auto',
  'container',
  'gvisor',
  'vm',
]

const isolation: Field<Setting<Isolation>> = {
  grow: laterWins,
  narrow: (granted, limit) =>
    ISOLATION_STRENGTH.indexOf(limit.value) > ISOLATION_STRENGTH.indexOf(granted?.value ?? 'auto')
      ? limit
      : granted,
}

/** True overrides every network grant. No later layer can reset it, not even a file after a flag. */
const offline: Field<Setting<boolean>> = {
  ...words([true, false]),
  grow: (earlier, later) => (earlier.value && !later.value ? earlier : later),
}

/** A later secret replaces the one of the same name. Untrusted layers have none: `parse.ts` refuses them. */
const secrets: Field<List<Secret>> = {
  grow: (earlier, later) => {
    const names = new Set(later.items.map(({ rule }) => rule.name))
    const kept = { ...earlier, items: earlier.items.filter(({ rule }) => !names.has(rule.name)) }
    return addUp(kept, later)
  },
  narrow: granted => granted,
}

/** Every setting, with its type and its merge. */
export const FIELDS = {
  profile: words(PROFILE_NAMES),
  isolation,
  backend: usersOnly<BackendName>(),
  workspace: words(WORKSPACE_MODES),
  'files.read': grants(deeper),
  'files.write': grants(deeper),
  'files.deny': denials<FileDenyRule>(),
  'files.protect': denials<ProtectRule>(),
  'network.http': netGrants,
  'network.tcp': netGrants,
  'network.groups': grants<string>(same),
  'network.deny': denials<DenyRule>(),
  'network.ask': words(['never', 'hold']),
  'network.hold': smaller<Millis>(),
  'network.mode': words(NETWORK_MODES),
  'network.upstreamProxy': usersOnly<string | null>(),
  'network.idle': smaller<Millis>(),
  'network.offline': offline,
  'exec.timeout': smaller<Millis>(),
  'exec.ceiling': smaller<Millis>(),
  'exec.maxOutput': smaller<Bytes>(),
  'limits.cpus': smaller<number>(),
  'limits.memory': smaller<Bytes>(),
  'limits.pids': smaller<number>(),
  'limits.wall': smaller<Millis>(),
  'limits.disk': smaller<Bytes>(),
  'limits.output': smaller<Bytes>(),
  'limits.files': smaller<number>(),
  env: environment,
  mounts: grants(sameMount),
  image: usersOnly<Image>(),
  'tools.shell': words<boolean>([false, true]),
  'tools.allow': tools,
  'tools.exec': words(['listed', 'any']),
  'git.identity': words<boolean>([false, true]),
  'vm.root': words<boolean>([false, true]),
  user: usersOnly<string>(),
  runtime: usersOnly<string>(),
  'ssh.agent.keys': grants<string>(same),
  'ssh.agent.hosts': grants<string>(same),
  'ssh.agent.sign': grants<string>(same),
  acceptGaps: grants<string>(same),
  ports: grants(samePort),
  secrets,
}

const KEYS = Object.keys(FIELDS) as SettingKey[]

/** Folds trusted layers, earliest first. */
export function grow(earlier: Settings, later: Settings): Settings {
  return combine(earlier, later, (field, a, b) =>
    b === undefined ? a : a === undefined ? b : field.grow(a, b),
  )
}

/** Applies an untrusted layer, which can only restrict. */
export function narrow(granted: Settings, limit: Settings): Settings {
  const kept = combine(withImpliedReads(granted), withImpliedReads(limit), (field, a, b) =>
    b === undefined ? a : field.narrow(a, b),
  )
  const { 'files.read': read, 'files.write': write } = kept
  if (read === undefined || write === undefined || limit['files.read'] === undefined) return kept
  const writable = FIELDS['files.write'].narrow(write, read)
  return writable === undefined ? kept : { ...kept, 'files.write': writable }
}

/** A writable path is readable. So a layer that sets both lists also means its writable paths as readable. */
function withImpliedReads(settings: Settings): Settings {
  const read = settings['files.read']
  const write = settings['files.write']
  if (read === undefined || write === undefined) return settings
  return {
    ...settings,
    'files.read': { clear: read.clear && write.clear, items: [...read.items, ...write.items] },
  }
}

function combine(
  a: Settings,
  b: Settings,
  how: <T>(field: Field<T>, a: T | undefined, b: T | undefined) => T | undefined,
): Settings {
  const out: Partial<Record<SettingKey, unknown>> = {}
  for (const key of KEYS) {
    const value = (how as (field: unknown, a: unknown, b: unknown) => unknown)(FIELDS[key], a[key], b[key])
    if (value !== undefined) out[key] = value
  }
  return out as Settings
}
