import { type Parsed, type Refusal, refuse } from '../source.ts'
import { type Address, isIPv6, parseAddress } from './address.ts'
import { classifyAddress } from './address-class.ts'
import { HOST_SERVICE } from './host.ts'
import {
  type AllowRule,
  type DenyRule,
  isMetadata,
  listOf,
  METADATA_WORD,
  type NetTarget,
  printEndpoint,
  printRule,
} from './net-rule.ts'
import { everySuffixIsPublic, type IsPublicSuffix, type Parts, parseTarget } from './net-target.ts'
import { HTTPS_PORT, parsePort } from './port.ts'
import { parsePattern } from './request-pattern.ts'

export { everySuffixIsPublic, type IsPublicSuffix } from './net-target.ts'

/** Parses an entry of `network.http`: a name or wildcard. The port is 443 if absent. */
export function parseHttpRule(text: string, isPublicSuffix: IsPublicSuffix): Parsed<AllowRule> {
  return parseEntry(text, entry => place(parseGrant(entry, isPublicSuffix), 'http'))
}

/** Parses an entry of `network.tcp`: an address or `host.pen.internal`, always with a port. */
export function parseTcpRule(text: string): Parsed<AllowRule> {
  return parseEntry(text, entry => place(parseGrant(entry, everySuffixIsPublic), 'tcp'))
}

/** Parses a grant for either list, as in `pen allow` and `--allow`. `listOf` says where it belongs. */
export function parseAllowRule(text: string, isPublicSuffix: IsPublicSuffix): Parsed<AllowRule> {
  return parseEntry(text, entry => parseGrant(entry, isPublicSuffix))
}

/** Parses an entry of `network.deny`: any target. Without a port it means all ports. */
export function parseDenyRule(text: string, isPublicSuffix: IsPublicSuffix): Parsed<DenyRule> {
  const parsed = parseEntry(text, entry =>
    withRequest<DenyRule>(entry, endpoint => {
      const parts = parseParts(endpoint)
      if (!parts.ok) return parts
      const target = parseTarget(parts.value, isPublicSuffix)
      return target.ok ? { ok: true, value: { ...target.value, port: parts.value.port ?? 'any' } } : target
    }),
  )
  // A query has many spellings, so the denial of one would deny nothing.
  return parsed.ok && (parsed.value.request?.query ?? '') !== ''
    ? refuse('a denial has no query', 'deny the path')
    : parsed
}

const METHODS = /^([A-Za-z-]+(?:,[A-Za-z-]+)*) +(?=\S)/

/** Splits off methods and path. An entry without both is about the whole host. */
function withRequest<R extends DenyRule>(text: string, parse: (endpoint: string) => Parsed<R>): Parsed<R> {
  const methods = METHODS.exec(text)
  const rest = methods === null ? text : text.slice(methods[0].length)
  const slash = rest.indexOf('/')
  if ((methods === null && slash === -1) || rest.includes('://')) return parse(text)
  const pattern = parsePattern(methods?.[1] ?? '', slash === -1 ? '' : rest.slice(slash))
  const rule = parse(slash === -1 ? rest : rest.slice(0, slash))
  if (!rule.ok) return rule
  if (!pattern.ok) return pattern
  const { value } = rule
  if (value.kind === 'address')
    return refuse('only a name can have a rule about requests', `write "${printRule(value)}"`)
  // The end of a copied address. As a rule it would match one page.
  if (rest.slice(slash) === '/' && methods === null) return refuse('an entry has no "/" at its end')
  return { ok: true, value: { ...value, request: pattern.value } }
}

const parseGrant = (text: string, isPublicSuffix: IsPublicSuffix): Parsed<AllowRule> =>
  withRequest(text, endpoint => parseEndpoint(endpoint, isPublicSuffix))

function parseEndpoint(text: string, isPublicSuffix: IsPublicSuffix): Parsed<AllowRule> {
  const parts = parseParts(text)
  if (!parts.ok) return parts
  const target = parseTarget(parts.value, isPublicSuffix)
  if (!target.ok) return target
  const { port } = parts.value
  const { value } = target
  const unsaid = requireWord(value, parts.value)
  if (unsaid !== undefined) return unsaid
  if (value.kind === 'name' || value.kind === 'wildcard')
    return { ok: true, value: { ...value, port: port ?? HTTPS_PORT } }
  const refusal = value.kind === 'address' ? refuseUnreachable(value.address) : undefined
  if (refusal !== undefined) return refusal
  if (port !== undefined) return { ok: true, value: { ...value, port } }
  return refuse('the port is missing', `write "${printEndpoint(value, 'any')}:PORT"`)
}

function requireWord(target: NetTarget, { hasWord, port }: Parts): Refusal | undefined {
  if (hasWord || !isMetadata(target)) return undefined
  const meant = `${METADATA_WORD}${printEndpoint(target, port ?? 'any')}${port === undefined ? ':PORT' : ''}`
  return refuse(
    "a cloud's metadata service gives out the credentials of this machine",
    `if that is meant, write "${meant}"`,
  )
}

/** Special addresses can be granted one by one. These accept no connection at all. */
function refuseUnreachable(address: Address): Refusal | undefined {
  const kind = classifyAddress(address)
  if (kind === 'multicast' || kind === 'broadcast') return refuse(`a ${kind} address takes no connection`)
  if (kind === 'link-local' && isIPv6(address))
    return refuse('a link-local IPv6 address needs a zone id, which no rule can hold')
  return undefined
}

/** Refuses a grant in the wrong list, so that each list has one kind of target. */
function place(rule: Parsed<AllowRule>, list: 'http' | 'tcp'): Parsed<AllowRule> {
  if (!rule.ok || listOf(rule.value) === list) return rule
  const why = list === 'http' ? 'network.http holds names' : `network.tcp holds addresses and ${HOST_SERVICE}`
  return refuse(why, `put "${printRule(rule.value)}" under network.${listOf(rule.value)}`)
}

function parseParts(whole: string): Parsed<Parts> {
  const hasWord = whole.startsWith(METADATA_WORD) && /[.:]/.test(whole.slice(METADATA_WORD.length))
  const text = hasWord ? whole.slice(METADATA_WORD.length) : whole
  const inBrackets = text.startsWith('[')
  const end = inBrackets ? text.indexOf(']') + 1 : colonOrEnd(text)
  const target = inBrackets ? text.slice(1, end - 1) : text.slice(0, end)
  if (end === text.length) return { ok: true, value: { target, inBrackets, hasWord, port: undefined } }
  if (text[end] !== ':' || text.includes(':', end + 1)) return refuseShape(text)
  const port = parsePort(text.slice(end + 1))
  return port.ok ? { ok: true, value: { target, inBrackets, hasWord, port: port.value } } : port
}

function colonOrEnd(text: string): number {
  const colon = text.indexOf(':')
  return colon === -1 ? text.length : colon
}

function refuseShape(text: string): Refusal {
  const address = parseAddress(text)
  if (address.ok) return refuse('an IPv6 address needs brackets', `write "[${address.value}]:PORT"`)
  if (/[[\]]/.test(text)) return refuse('brackets are only for IPv6 addresses, as in "[2001:db8::7]:443"')
  return refuse('an entry is one host and one port, with one colon between them')
}

/** Refuses a URL, or an entry with spaces around it, and suggests the correct entry. */
function parseEntry<R extends DenyRule>(text: string, parse: (text: string) => Parsed<R>): Parsed<R> {
  const parsed = parse(text)
  if (parsed.ok) return parsed
  const meant = plainEntry(text)
  const corrected = meant === undefined ? undefined : parse(meant)
  if (!corrected?.ok) return parsed
  const why =
    text.trim() === meant ? 'an entry has no space around it' : 'an entry is a host and a port, not a URL'
  return refuse(why, `write "${printRule(corrected.value)}"`)
}

const SCHEME_PORTS: ReadonlyMap<string | undefined, string> = new Map([
  ['http', '80'],
  ['ws', '80'],
  ['https', '443'],
  ['wss', '443'],
  ['ssh', '22'],
  ['git', '9418'],
])

function plainEntry(text: string): string | undefined {
  const url = /^(?:([a-z][a-z0-9+.-]*):\/\/(?:[^/?#\\]*@)?)?([^/?#\\@\s]+)(\/.*)?$/isu.exec(text.trim())
  const [, scheme, authority, path = '/'] = url ?? []
  // Without a scheme, a path makes a rule about requests.
  if (authority === undefined || (scheme === undefined && path !== '/')) return undefined
  const port = SCHEME_PORTS.get(scheme?.toLowerCase())
  const plain = port === undefined || /:[0-9]+$/.test(authority) ? authority : `${authority}:${port}`
  return plain === text ? undefined : plain
}
