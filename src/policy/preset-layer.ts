/** What a preset opens for one run, given which variables the host has set. Values are never looked at: names suffice. */
import type { GroupName } from './network/groups.ts'
import { PRESETS, type PresetName } from './presets.ts'

/** A document that the person chose by name: trusted as the command line is, and weaker than all that they wrote themselves. */
export interface NamedDocument {
  readonly name: string
  readonly document: object
}

export interface PresetLayer extends NamedDocument {
  readonly groups: readonly GroupName[]
  readonly hosts: readonly string[]
  /** Variables of the host that are passed on. */
  readonly passed: readonly string[]
  /** Among them: keys and tokens. */
  readonly keys: readonly string[]
  /** Among them: those that hold an address, which is not opened. */
  readonly addresses: readonly string[]
}

export function presetLayer(name: PresetName, isSet: (variable: string) => boolean): PresetLayer {
  const preset = PRESETS[name]
  const keys = preset.providers.flatMap(provider => provider.keys).filter(isSet)
  const addresses = preset.addresses.filter(isSet)
  const passed = [...keys, ...preset.passes.filter(isSet), ...addresses]
  const groups = preset.providers
    .filter(provider => provider.always || provider.keys.some(isSet))
    .map(provider => provider.group)
  const hosts = preset.hosts.map(({ rule }) => rule)
  return {
    name: `preset ${name} v${preset.version}`,
    groups,
    hosts,
    passed,
    keys,
    addresses,
    document: {
      // An empty list would take away what others granted.
      network: { ...(groups.length > 0 && { groups }), ...(hosts.length > 0 && { http: hosts }) },
      mounts: preset.volumes.map(({ volume, at }) => ({ volume, at })),
      env: { ...preset.sets, ...Object.fromEntries(passed.map(variable => [variable, { from: 'host' }])) },
    },
  }
}
