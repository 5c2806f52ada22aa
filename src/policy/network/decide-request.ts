/** The verdict on one HTTP request of a connection that may be made. */
import type { Allowed } from './decide-connection.ts'
import { type Denied, deny, denyByRule } from './denial.ts'
import { type AllowRule, printEndpoint, ruleWord } from './net-rule.ts'
import { matchesRequest, type RequestLine } from './request-pattern.ts'

/** What the gateway needs to know about a request that is allowed. */
export type RequestVerdict = Pick<Allowed, 'ok' | 'rule' | 'source'> | Denied

export function decideRequest(connection: Allowed, request: RequestLine): RequestVerdict {
  const { requests } = connection
  if (requests === undefined) return connection
  const denied = requests.deny.find(
    ({ rule }) => rule.request !== undefined && matchesRequest(rule.request, request, 'any-reading'),
  )
  if (denied !== undefined) return denyByRule(denied)
  if (requests.whole) return connection
  const allowed = requests.allow.find(
    ({ rule }) => rule.request !== undefined && matchesRequest(rule.request, request, 'exact'),
  )
  return allowed === undefined ? denyRequest(connection, request) : { ok: true, ...allowed }
}

/** Only HTTP may go to a host that is allowed by rules about requests. */
export const denyOtherProtocol = ({ dial, rule, source }: Allowed): Denied =>
  deny(
    'requests-only',
    `${printEndpoint(dial, dial.port)} is allowed for HTTP requests only`,
    `pen allow ${ruleWord(dial)}`,
    { rule, source },
  )

function denyRequest({ dial, rule, source }: Allowed, request: RequestLine): Denied {
  const { method, exact } = request
  const own = requestRule(dial, request)
  const why = `no rule allows ${method} ${printEndpoint(dial, 'any')}${own === undefined ? '/…' : exact}`
  const wide = { ...dial, request: { methods: [method], path: '/**', query: '' } }
  return deny('request-not-allowed', why, `pen allow ${ruleWord(own ?? wide)}`, { rule, source })
}

/** The rule that allows this request alone. The path comes from a sandbox: an odd one is not put into a command. */
export const requestRule = (
  dial: Allowed['dial'],
  { method, exact }: Pick<RequestLine, 'method' | 'exact'>,
): AllowRule | undefined =>
  isPlain(exact) ? { ...dial, request: { methods: [method], path: exact, query: '' } } : undefined

const isPlain = (path: string): boolean => path.length <= 256 && /^\/[A-Za-z0-9._~/@:+=,-]*$/.test(path)
