/** The layer of a preset for one run. It depends on which host variables are set, never on their values. */
import type { GroupName } from './network/groups.ts'
import { PRESETS, type PresetName } from './presets.ts'

/** A document that the user chose by name. It is trusted like the command line, and weaker than the user's own config. */
export interface NamedDocument {
  readonly name: string
  readonly document: object
}

export interface PresetLayer extends NamedDocument {
  readonly groups: readonly GroupName[]
  readonly hosts: readonly string[]
  /** Host variables that are passed to the sandbox. */
  readonly passed: readonly string[]
  /** The passed variables that hold keys or tokens. */
  readonly keys: readonly string[]
  /** The passed variables that hold an address. The preset does not allow that address. */
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
      // An empty list would remove the grants of other layers.
      network: { ...(groups.length > 0 && { groups }), ...(hosts.length > 0 && { http: hosts }) },
      mounts: preset.volumes.map(({ volume, at }) => ({ volume, at })),
      env: { ...preset.sets, ...Object.fromEntries(passed.map(variable => [variable, { from: 'host' }])) },
    },
  }
}
