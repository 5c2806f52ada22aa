/**
 * The preset of a coding agent for one sandbox, and the lines that explain it to the user. The address of a model server comes from a
 * variable of the host, such as ANTHROPIC_BASE_URL. A project's `.envrc` can set it, so it is passed on but opens nothing,
 * and no key goes there. Lines show its host and port, never a path or a credential.
 */
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { parseAddress } from '../policy/network/address.ts'
import { decideConnection, exactRule } from '../policy/network/decide-connection.ts'
import { HOST_SERVICE, isLoopbackName, parseHost } from '../policy/network/host.ts'
import type { NetworkIndex } from '../policy/network/network.ts'
import { parsePort } from '../policy/network/port.ts'
import { isForHost, printSecretHost } from '../policy/network/secret.ts'
import type { Policy } from '../policy/policy.ts'
import {
  type AgentPreset,
  isPresetName,
  PRESETS,
  type PresetLayer,
  type PresetName,
  presetLayer,
} from '../policy/presets.ts'
import { leaveInstructions } from './instructions.ts'
import type { Prepared } from './prepare.ts'

type Environment = Readonly<Record<string, string | undefined>>

export const openFor = (name: PresetName, env: Environment): PresetLayer =>
  presetLayer(name, {
    isSet: variable => (env[variable] ?? '') !== '',
    isSecret: variable => LONG_ENOUGH.test(env[variable] ?? ''),
  })

/** Shorter values are words such as `dummy`, for servers that want any key. */
const LONG_ENOUGH = /^(?=(?:.*[A-Za-z0-9]){16})[\x21-\x7e]{16,4096}$/

/** For a sandbox that stays. The name comes from `pen start`. */
export function openAgent(name: string, env: Environment) {
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
  env: Environment,
): string[] {
  const preset = PRESETS[name]
  const { title, version, volumes, providers, ownSandboxOff } = preset
  const { hosts, keys, passed, addresses } = opening
  const inForce = loaded.policy.network.secrets
  const secrets = inForce.filter(({ rule }) => opening.secrets.some(({ name }) => name === rule.name))
  const exposed = opening.secrets.filter(({ name }) => !inForce.some(({ rule }) => rule.name === name))
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
    ...secrets.map(
      ({ rule }) => `uses ${rule.name} without seeing it, at ${rule.to.map(printSecretHost).join(', ')}`,
    ),
    ...exposed.map(secret => `sees ${secret.name} itself, as you asked`),
    ...(passed.length === 0 ? [] : [`passes on ${passed.join(', ')}`]),
    ...(keys.length + opening.secrets.length > 0 ? [] : [noKey(providers)]),
    ...(ownSandboxOff === undefined
      ? []
      : [`switches off the agent's own sandbox, which cannot start inside pen's: ${ownSandboxOff}`]),
    ...addresses.flatMap(
      variable => whyNotReached(variable, env[variable], preset, loaded.policy.network.index) ?? [],
    ),
    ...addresses.flatMap(variable => keysKeptBack(variable, env[variable], preset, loaded.policy)),
  ]
}

function noKey(providers: AgentPreset['providers']): string {
  if (providers.some(({ always }) => always)) return 'finds no key in your environment: sign in inside'
  const names = providers.flatMap(provider => provider.keys).join(', ')
  return `finds no key in your environment, so no models are open: set one of ${names}, or add --group for a sign-in of its own`
}

/** Arguments for an agent that takes the address on its command line. */
export function addressWords({ addressFlag }: AgentPreset, env: Environment): readonly string[] {
  if (addressFlag === undefined) return []
  const url = plainAddress(env[addressFlag.variable])
  return url === undefined ? [] : addressFlag.words(JSON.stringify(url))
}

/** Every user of the host can see a command line, so an address with a credential is not put there. */
function plainAddress(value: string | undefined): string | undefined {
  const url = urlOf(value)
  if (url === undefined || url.username !== '' || url.password !== '' || url.search !== '') return undefined
  return value
}

/** Why the address in a variable cannot be reached; undefined when the policy opens it. */
export function whyNotReached(
  variable: string,
  value: string | undefined,
  { addressFlag }: AgentPreset,
  index: NetworkIndex,
): string | undefined {
  const url = urlOf(value)
  if (url === undefined) return `${variable} holds no http or https address`
  if (addressFlag?.variable === variable && plainAddress(value) === undefined)
    return `${variable} holds a credential or a query, which is not put on a command line: set ${addressFlag.setting} in the agent's own settings`
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = parsePort(url.port || (url.protocol === 'https:' ? '443' : '80'))
  if (!port.ok) return `${variable} holds no port that can be reached`
  const address = parseAddress(host)
  const name = parseHost(host)
  if (host === '127.0.0.1' || host === '::1' || (name.ok && isLoopbackName(name.value)))
    return `the address in ${variable} is the sandbox's own loopback inside: for a server of this machine use ${HOST_SERVICE}:${port.value}, with --allow ${HOST_SERVICE}:${port.value}`
  const to = address.ok ? { address: address.value } : name.ok ? { name: name.value } : undefined
  if (to === undefined) return `${variable} holds no host that can be reached`
  if (decideConnection(index, to, port.value).ok) return undefined
  return `the address in ${variable} is not open: add --allow ${host.includes(':') ? `[${host}]` : host}:${port.value}`
}

/** The keys that the agent may send to this address and that do not go there, with the command by which the user says so. */
export function keysKeptBack(
  variable: string,
  value: string | undefined,
  { providers }: AgentPreset,
  { network }: Pick<Policy, 'network'>,
): string[] {
  const url = urlOf(value)
  const host = parseHost(url?.hostname ?? '')
  const isPlain = url?.protocol === 'http:'
  const port = parsePort(url?.port || (isPlain ? '80' : '443'))
  if (!host.ok || !port.ok || isLoopbackName(host.value)) return []
  const dial = exactRule({ name: host.value }, port.value)
  return providers
    .filter(({ addresses }) => addresses.includes(variable))
    .flatMap(({ keys, places }) =>
      network.secrets
        .filter(({ rule }) => keys.includes(rule.name))
        .filter(({ rule }) => !isForHost({ to: rule.to.filter(to => to.plain === isPlain) }, dial))
        .map(({ rule: { name } }) => {
          const fields = places.flatMap(place => /^header:(.*)/.exec(place)?.[1] ?? [])
          const to = `${isPlain ? 'http://' : ''}${host.value}:${port.value}`
          return `${name} does not go to the address in ${variable}: pen secret add ${name} --env ${name} --to ${to} ${fields.map(field => `--header ${field}`).join(' ')}`
        }),
    )
}

function urlOf(value: string | undefined): URL | undefined {
  const url = URL.canParse(value ?? '') ? new URL(value ?? '') : undefined
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined
}
