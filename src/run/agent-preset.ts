/** The preset of a coding agent for one sandbox, and the lines that explain it to the user. */
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import {
  type AgentPreset,
  isPresetName,
  PRESETS,
  type PresetLayer,
  type PresetName,
  presetLayer,
} from '../policy/presets.ts'
import { leaveInstructions } from './instructions.ts'
import { whyNotReached } from './model-address.ts'
import type { Prepared } from './prepare.ts'

export const openFor = (name: PresetName, env: Readonly<Record<string, string | undefined>>): PresetLayer =>
  presetLayer(name, variable => (env[variable] ?? '') !== '')

/** For a sandbox that stays. The name comes from `pen start`. */
export function openAgent(name: string, env: Readonly<Record<string, string | undefined>>) {
  if (!isPresetName(name))
    throw new PenError('USAGE', { what: `there is no preset for the agent "${printable(name, 64)}"` })
  const opening = openFor(name, env)
  return {
    opening,
    begin(prepared: Prepared, say: (line: string) => void): void {
      for (const line of whatItOpens(name, opening, prepared, env)) say(printable(line, 1024))
      leaveInstructions(PRESETS[name], prepared)
    },
  }
}

/** What the preset opens under this policy. Values of variables are not shown, except the host of an address. */
export function whatItOpens(
  name: PresetName,
  opening: PresetLayer,
  { plan, loaded }: Prepared,
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  const preset = PRESETS[name]
  const { title, version, volumes, providers, ownSandboxOff } = preset
  const { hosts, keys, passed, addresses } = opening
  const groups = opening.groups.filter(group => loaded.policy.network.groups.includes(group))
  const gone = opening.groups.filter(group => !groups.includes(group))
  const open = [...groups.map(group => `group ${group}`), ...hosts].join(', ')
  const off = plan.network.kind === 'none' ? `no host: ${plan.network.why}` : undefined
  return [
    `${title} (preset v${version}) opens ${off ?? (open === '' ? 'no host' : open)}`,
    ...gone.map(group => `needs group ${group}, which your config or the project's document takes away`),
    ...volumes.map(
      ({ volume, at, holds }) => `keeps ${at} (${holds}) in the volume ${volume} of this project`,
    ),
    ...(passed.length === 0 ? [] : [`passes on ${passed.join(', ')}`]),
    ...(keys.length > 0 ? [] : [noKey(providers)]),
    ...(ownSandboxOff === undefined
      ? []
      : [`switches off the agent's own sandbox, which cannot start inside pen's: ${ownSandboxOff}`]),
    ...addresses.flatMap(
      variable => whyNotReached(variable, env[variable], preset, loaded.policy.network.index) ?? [],
    ),
  ]
}

function noKey(providers: AgentPreset['providers']): string {
  if (providers.some(({ always }) => always)) return 'finds no key in your environment: sign in inside'
  const names = providers.flatMap(provider => provider.keys).join(', ')
  return `finds no key in your environment, so no models are open: set one of ${names}, or add --group for a sign-in of its own`
}
