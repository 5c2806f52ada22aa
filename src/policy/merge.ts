/** Layers become one, in the order of trust; the profile is decided first, because everything stands on it. */

import { FIELDS, grow, narrow } from './fields.ts'
import { type AllowRule, covers } from './net-rule.ts'
import { isWithin } from './path.ts'
import type { Layer, List, PathGrant, SettingKey, Settings } from './settings.ts'
import type { Setting, Sourced } from './source.ts'

export interface MergeInput {
  /** Makes the base layer for a profile; the profile itself is decided first, because everything stands on it. */
  readonly base: (profile: NonNullable<Settings['profile']>['value']) => Layer
  /** The user's layers, weakest first. */
  readonly trusted: readonly Layer[]
  readonly untrusted: readonly Layer[]
  readonly allowUserExpansion: boolean
}

export interface Merged {
  readonly settings: Settings
  readonly layers: readonly Layer[]
  /** Grants that an untrusted layer added because the user let it. */
  readonly expanded: readonly Expansion[]
}

export interface Expansion {
  readonly key: SettingKey
  readonly layer: string
  readonly item: unknown
}

export function mergeLayers(input: MergeInput): Merged {
  const all = [...input.trusted, ...(input.allowUserExpansion ? input.untrusted.map(withoutRemovals) : [])]
  const saidProfile = all.reduce<Settings>((s, layer) => grow(s, layer.settings), {}).profile
  const limits = input.allowUserExpansion ? [] : input.untrusted
  const profile = limits.reduce(
    (at, { settings }) =>
      settings.profile === undefined ? at : (FIELDS.profile.narrow(at, settings.profile) ?? at),
    saidProfile ?? { value: 'coding' as const, source: { layer: 'default', place: undefined } },
  )
  const layers = [input.base(profile.value), ...all]
  const granted = layers.reduce<Settings>((s, layer) => grow(s, layer.settings), {})
  const settings = limits.reduce<Settings>((s, layer) => narrow(s, layer.settings), granted)
  return {
    settings: { ...settings, profile },
    layers: [...layers, ...limits],
    expanded: input.allowUserExpansion ? input.untrusted.flatMap(layer => expansions(layer, input)) : [],
  }
}

/** An untrusted layer that may add still may not take back a denial of the user's. */
function withoutRemovals(layer: Layer): Layer {
  const kept = Object.entries(layer.settings).filter(
    ([key, value]) =>
      !(/^(files\.(deny|protect)|network\.deny)$/.test(key) && (value as List<unknown>).clear),
  )
  return { ...layer, settings: Object.fromEntries(kept) as Settings }
}

/** What the layer adds over the user's own: each grant that the trusted layers alone do not give. */
function expansions(layer: Layer, input: MergeInput): Expansion[] {
  const own = [input.base(layer.settings.profile?.value ?? 'coding'), ...input.trusted].reduce<Settings>(
    (s, trusted) => grow(s, trusted.settings),
    {},
  )
  const out: Expansion[] = []
  for (const key of Object.keys(layer.settings) as SettingKey[]) {
    const said = layer.settings[key]
    const had = own[key]
    if (said === undefined || key === 'files.deny' || key === 'files.protect' || key === 'network.deny')
      continue
    if ('items' in said) {
      const before = had !== undefined && 'items' in had ? (had.items as readonly Sourced<unknown>[]) : []
      for (const { rule } of said.items as readonly Sourced<unknown>[])
        if (!before.some(item => granted(key, item.rule, rule)))
          out.push({ key, layer: layer.name, item: rule })
    } else if (said instanceof Map) {
      for (const name of said.keys()) out.push({ key, layer: layer.name, item: name })
    } else if (had === undefined || ('value' in had && had.value !== (said as Setting<unknown>).value)) {
      out.push({ key, layer: layer.name, item: (said as Setting<unknown>).value })
    }
  }
  return out
}

function granted(key: SettingKey, before: unknown, now: unknown): boolean {
  if (key === 'files.read' || key === 'files.write')
    return isWithin((now as PathGrant).path, (before as PathGrant).path)
  if (key === 'network.http' || key === 'network.tcp') return covers(before as AllowRule, now as AllowRule)
  return JSON.stringify(before) === JSON.stringify(now)
}
