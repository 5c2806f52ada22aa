import { type Parsed, type Refusal, refuse } from '../source.ts'
import { type Address, isIPv6, parseAddress } from './address.ts'
import { classifyAddress, embeddedIPv4 } from './address-class.ts'
import { HOST_SERVICE, type Host, isLoopbackName, isUnder, parseHost } from './host.ts'
import { isMetadata, METADATA_WORD, type NetTarget, printEndpoint } from './net-rule.ts'
import type { Port } from './port.ts'

/**
 * Whether anyone can register names under a suffix, such as `com` or `co.uk`.
 * The list is large, so the caller injects it only for an entry with a star.
 */
export type IsPublicSuffix = (name: Host) => boolean

/** For a caller without the list: no wildcard is safe then. */
export const everySuffixIsPublic: IsPublicSuffix = () => true

/** The parts of a rule's text, not yet checked. */
export interface Parts {
  readonly target: string
  readonly inBrackets: boolean
  /** Whether the text starts with `metadata:`. */
  readonly hasWord: boolean
  readonly port: Port | undefined
}

export function parseTarget(parts: Parts, isPublicSuffix: IsPublicSuffix): Parsed<NetTarget> {
  const target = parseWithoutWord(parts, isPublicSuffix)
  if (target.ok && parts.hasWord && !isMetadata(target.value))
    return refuse(`"${METADATA_WORD}" is only for an address of a cloud's metadata service`)
  return target
}

function parseWithoutWord(parts: Parts, isPublicSuffix: IsPublicSuffix): Parsed<NetTarget> {
  const { target, inBrackets, port } = parts
  if (inBrackets || /^[0-9]/.test(target)) {
    const address = parseAddress(target)
    if (address.ok) return readAddressTarget(address.value, parts)
    if (inBrackets) return address
  }
  if (target.includes('*')) return parseWildcard(target, isPublicSuffix)
  const host = parseHost(target)
  if (!host.ok) return host
  if (host.value === HOST_SERVICE) return { ok: true, value: { kind: 'host-service' } }
  return refuseOwnName(host.value, port) ?? { ok: true, value: { kind: 'name', host: host.value } }
}

function readAddressTarget(address: Address, { target, inBrackets, port }: Parts): Parsed<NetTarget> {
  if (inBrackets !== isIPv6(address)) return refuse('brackets are only for IPv6 addresses')
  const value: NetTarget = { kind: 'address', address }
  if (address !== target.toLowerCase() && classifyAddress(address) !== 'embedded-v4')
    return refuse(
      'an address is written in its shortest form',
      `write "${printEndpoint(value, port ?? 'any')}"`,
    )
  return refuseOwnAddress(address, port) ?? { ok: true, value }
}

function parseWildcard(text: string, isPublicSuffix: IsPublicSuffix): Parsed<NetTarget> {
  if (/^\*\.?$/.test(text))
    return refuse('a bare star would mean every name', 'name the hosts, one entry for each')
  const suffix = parseHost(text.replace(/^\*\.?/, ''))
  if (!suffix.ok) return suffix
  if (!text.startsWith('*.'))
    return refuse('a star must be a whole part of a name', `write "*.${suffix.value}"`)
  const own = refuseOwnName(suffix.value, undefined)
  if (own !== undefined) return own
  // The suffix list is as old as the binary. Refusing single labels also covers newer top-level domains.
  if (!suffix.value.includes('.') || isPublicSuffix(suffix.value))
    return refuse(
      `anyone can have a name under "${suffix.value}"`,
      `name the domain: "*.example.${suffix.value}"`,
    )
  return { ok: true, value: { kind: 'wildcard', suffix: suffix.value } }
}

/** `localhost` means the sandbox inside and the host in the gateway, so a rule for it is ambiguous. */
function refuseOwnName(host: Host, port: Port | undefined): Refusal | undefined {
  if (isLoopbackName(host)) return refuse(OWN_LOOPBACK, serviceFix(port))
  if (host === 'pen.internal' || isUnder(host, 'pen.internal' as Host))
    return refuse(`the only name under "pen.internal" is ${HOST_SERVICE}`, serviceFix(port))
  return undefined
}

/** Refuses an address that means this machine, or that embeds another address. */
function refuseOwnAddress(address: Address, port: Port | undefined): Refusal | undefined {
  const kind = classifyAddress(address)
  if (kind === 'loopback' || kind === 'unspecified') return refuse(OWN_LOOPBACK, serviceFix(port))
  const inner = embeddedIPv4(address)
  if (inner === undefined) return undefined
  const meant = printEndpoint({ kind: 'address', address: inner }, port ?? 'any')
  return refuse('the address embeds an IPv4 address', `write "${meant}"`)
}

const OWN_LOOPBACK = 'a sandbox has its own loopback, which needs no rule'

const serviceFix = (port: Port | undefined): string =>
  `"${HOST_SERVICE}:${port ?? 'PORT'}" is the name for a service on this machine`
