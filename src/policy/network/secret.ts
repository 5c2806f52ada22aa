/** A secret that the gateway puts into requests. The sandbox has a placeholder, and never the value: see decision 81. */
import { PenError } from '../../base/error.ts'
import type { NetworkPolicy } from '../policy.ts'
import type { Sourced } from '../source.ts'
import type { Allowed } from './decide-connection.ts'
import { type AllowRule, covers, printRule } from './net-rule.ts'
import type { NetworkIndex } from './network.ts'
import { matchesRequest, type RequestLine } from './request-pattern.ts'

export type SecretSource =
  | { readonly kind: 'env'; readonly variable: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'command'; readonly argv: readonly string[] }
  /** Attributes of an entry in the desktop's keyring, for `secret-tool`. */
  | { readonly kind: 'keyring'; readonly attributes: ReadonlyMap<string, string> }
  /** Sign-in servers of OAuth: the gateway keeps the tokens of their answers. */
  | { readonly kind: 'oauth'; readonly servers: readonly AllowRule[] }

/** Where a secret may go: an endpoint, and with a path only requests that match. */
export interface SecretHost {
  readonly rule: AllowRule
  /** Over plain HTTP. The user says so with `http://`. */
  readonly plain: boolean
}

export interface Secret {
  /** Also the name of the variable inside. */
  readonly name: string
  readonly from: SecretSource
  readonly to: readonly SecretHost[]
  /** Names of header fields, in lower case. */
  readonly headers: readonly string[]
  /** Names of parameters in the query. */
  readonly parameters: readonly string[]
  /** Keys that sign requests: see decision 83. They are in no field. */
  readonly sign?: 'aws'
}

/** The parts of AWS keys, as AWS spells the variables after their prefix. The last one is for temporary keys. */
const AWS_PARTS = ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY', 'SESSION_TOKEN'] as const

/** The variables inside that hold placeholders, or those of the host for the name in `env`. */
export const variablesOf = ({ sign }: Pick<Secret, 'sign'>, name: string): readonly string[] =>
  sign === undefined ? [name] : AWS_PARTS.map(part => `${name}_${part}`)

/** With one name for two secrets, the value of one would go to the hosts of the other. */
export function refuseSameName(secrets: readonly Sourced<Secret>[]): void {
  const seen = new Set<string>()
  for (const { rule, source } of secrets)
    for (const variable of variablesOf(rule, rule.name)) {
      if (seen.has(variable))
        throw new PenError('CONFIG_VALUE', {
          what: `secrets: two of them have the variable ${variable}`,
          at: source.place ?? source.layer,
          hint: 'give each its own name, or name all hosts of a value in one entry',
        })
      seen.add(variable)
    }
}

/** A connection of which the gateway sees the requests. */
interface Connection {
  readonly dial: Allowed['dial']
  readonly isSecure: boolean
}

export const mayReceive = (
  { to }: Pick<Secret, 'to'>,
  { dial, isSecure }: Connection,
  request: RequestLine,
): boolean =>
  to.some(
    ({ rule, plain }) =>
      plain !== isSecure &&
      coversEndpoint(rule, dial) &&
      (rule.request === undefined || matchesRequest(rule.request, request, 'exact')),
  )

/**
 * Whether the answer to this request may hold tokens: at the token endpoint in every spelling, by every method. Servers
 * read paths in many ways, so every path counts that speaks of tokens. By GET such a path is often a download.
 */
export const mayAnswerTokens = (
  { from }: Secret,
  { dial, isSecure }: Connection,
  line: RequestLine,
): boolean => {
  if (from.kind !== 'oauth' || !isSecure) return false
  const here = from.servers.filter(rule => coversEndpoint(rule, dial))
  const speaks =
    !/^(?:GET|HEAD)$/.test(line.method) && /oauth|token|key/i.test(line.readings.join(' ') + line.query)
  return here.some(
    ({ request }) => speaks || (request !== undefined && matchesRequest(request, line, 'any-reading')),
  )
}

/** Whether its body may have tokens. Elsewhere on the same server a program could store them for others to read. */
export const mayCarryTokens = (
  { from }: Secret,
  { dial, isSecure }: Connection,
  request: RequestLine,
): boolean =>
  from.kind === 'oauth' &&
  isSecure &&
  request.method === 'POST' &&
  from.servers.some(
    rule =>
      coversEndpoint(rule, dial) &&
      rule.request !== undefined &&
      matchesRequest(rule.request, request, 'exact'),
  )

/** Whether the policy opens any host, so that the sandbox must trust pen's authority. */
export const opensHosts = ({ allow, deny, secrets }: NetworkPolicy, forSignIns: boolean): boolean =>
  secrets.some(({ rule }) => forSignIns || rule.from.kind !== 'oauth') ||
  [...allow, ...deny].some(({ rule }) => rule.request !== undefined)

/** Whether this host may receive the secret in any request. */
export const isForHost = ({ to }: Pick<Secret, 'to'>, dial: Allowed['dial']): boolean =>
  to.some(({ rule }) => coversEndpoint(rule, dial))

/**
 * Whether TLS to this host must be opened: a rule about its requests, or a secret for it. A sandbox that does not trust
 * pen signs in as without pen.
 */
export const mustOpen = (index: NetworkIndex, { requests, dial }: Allowed, isTrusted: boolean): boolean =>
  requests !== undefined ||
  index.secrets.some(
    ({ rule: { from, to } }) =>
      (isTrusted || from.kind !== 'oauth') && to.some(to => !to.plain && coversEndpoint(to.rule, dial)),
  )

function coversEndpoint({ request: _, ...rule }: AllowRule, dial: Allowed['dial']): boolean {
  return covers(rule, dial)
}

export const printSecretHost = ({ rule, plain }: SecretHost): string =>
  `${plain ? 'http://' : ''}${printRule(rule)}`

export const printSecret = (secret: Secret): string =>
  `${secret.name} from ${printSource(secret.from)}, to ${secret.to.map(printSecretHost).join(', ')}, in ${printPlaces(secret)}`

export const printPlaces = ({ headers, parameters, sign }: Secret): string =>
  [
    ...(sign === undefined ? [] : ['signatures of AWS']),
    ...headers,
    ...parameters.map(name => `?${name}=`),
  ].join(', ')

export function printSource(from: SecretSource): string {
  switch (from.kind) {
    case 'env':
      return `the variable ${from.variable}`
    case 'file':
      return `the file ${from.path}`
    case 'command':
      return `the command ${from.argv[0]}`
    case 'keyring':
      return 'the keyring'
    case 'oauth':
      return `a sign-in at ${from.servers.map(rule => printRule(rule)).join(' or ')}`
  }
}
