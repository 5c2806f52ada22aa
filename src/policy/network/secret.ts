/** A secret that the gateway puts into requests. The sandbox has a placeholder, and never the value: see decision 81. */
import type { NetworkPolicy } from '../policy.ts'
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

/** Whether the policy opens any host, so that the sandbox must trust pen's authority. */
export const opensHosts = ({ allow, deny, secrets }: NetworkPolicy): boolean =>
  secrets.length > 0 || [...allow, ...deny].some(({ rule }) => rule.request !== undefined)

/** Whether this host may receive the secret in any request. */
export const isForHost = ({ to }: Pick<Secret, 'to'>, dial: Allowed['dial']): boolean =>
  to.some(({ rule }) => coversEndpoint(rule, dial))

/** Whether TLS to this host must be opened: a rule about its requests, or a secret for it. */
export const mustOpen = (index: NetworkIndex, { requests, dial }: Allowed): boolean =>
  requests !== undefined ||
  index.secrets.some(({ rule }) => rule.to.some(to => !to.plain && coversEndpoint(to.rule, dial)))

function coversEndpoint({ request: _, ...rule }: AllowRule, dial: Allowed['dial']): boolean {
  return covers(rule, dial)
}

export const printSecretHost = ({ rule, plain }: SecretHost): string =>
  `${plain ? 'http://' : ''}${printRule(rule)}`

export const printSecret = (secret: Secret): string =>
  `${secret.name} from ${printSource(secret.from)}, to ${secret.to.map(printSecretHost).join(', ')}, in ${printPlaces(secret)}`

export const printPlaces = ({ headers, parameters }: Secret): string =>
  [...headers, ...parameters.map(name => `?${name}=`)].join(', ')

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
  }
}
