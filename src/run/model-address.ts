/**
 * The address of a model server in a variable of the host, such as ANTHROPIC_BASE_URL. A project's `.envrc` can set it, so it is passed on
 * but opens nothing. Lines show its host and port, never a path or a credential.
 */
import { parseAddress } from '../policy/network/address.ts'
import { decideConnection } from '../policy/network/decide-connection.ts'
import { HOST_SERVICE, isLoopbackName, parseHost } from '../policy/network/host.ts'
import type { NetworkIndex } from '../policy/network/network.ts'
import { parsePort } from '../policy/network/port.ts'
import type { AgentPreset } from '../policy/presets.ts'

/** Arguments for an agent that takes the address on its command line. */
export function addressWords(
  { addressFlag }: AgentPreset,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
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

function urlOf(value: string | undefined): URL | undefined {
  const url = URL.canParse(value ?? '') ? new URL(value ?? '') : undefined
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined
}
