/**
 * The last judgement of a request before it is sent: the rules about requests, then the record, then the secrets. What
 * was judged is what is sent: the path goes out in the form that the rules saw.
 */
import type { Allowed } from '../../policy/network/decide-connection.ts'
import { decideRequest } from '../../policy/network/decide-request.ts'
import { printRule } from '../../policy/network/net-rule.ts'
import { type RequestPath, readRequestPath } from '../../policy/network/request-path.ts'
import type { RequestLine } from '../../policy/network/request-pattern.ts'
import type { Secret } from '../../policy/network/secret.ts'
import { showSource } from '../../policy/source.ts'
import { badRequest, type Refusal, refusalOf } from '../refusal.ts'
import { auditTarget, type Route } from '../route.ts'
import { notSigned } from '../secrets/aws-request.ts'
import type { Replaced } from '../secrets/vault.ts'
import type { Session } from '../session.ts'
import type { Forwarding } from './forward.ts'
import type { RequestHead } from './head.ts'

interface Incoming {
  readonly request: RequestHead
  readonly path: string
  readonly isSecure: boolean
}

export type Outgoing =
  | {
      readonly kind: 'forward'
      readonly forwarding: Pick<
        Forwarding,
        'request' | 'path' | 'scan' | 'sign' | 'exchange' | 'secretIn' | 'onAnswer'
      >
      /** The answer is complete. */
      readonly done: () => void
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** The audit could not be written. */
  | { readonly kind: 'unrecorded' }

export function judgeOutgoing(session: Session, route: Route, incoming: Incoming): Outgoing {
  const { shared } = session
  const { request, path, isSecure } = incoming
  const verdict = route.verdict()
  if (!verdict.ok) return { kind: 'refused', refusal: refusalOf(verdict) }
  // Most requests: no rule is about requests, and no secret exists.
  if (verdict.requests === undefined && !isSecure && shared.vault === undefined)
    return { kind: 'forward', forwarding: { request, path }, done: () => undefined }

  const read = readRequestPath(path)
  if (!read.ok && verdict.requests !== undefined) return refused(badRequest(read.why), request.method, '')
  const line: RequestLine = { method: request.method, ...(read.ok ? read.value : unreadable(path)) }
  const judged = judgeByRules(verdict, request, line)
  if (!judged.ok) return refused(judged.refusal, line.method, line.exact)

  const { index } = shared.network()
  const sent = { dial: verdict.dial, isSecure, line, fields: request.fields }
  const replaced: Replaced | Refusal = shared.vault?.replace(index, sent) ?? {
    fields: request.fields,
    query: line.query,
    used: [],
  }
  if ('reason' in replaced) return refused(replaced, line.method, line.exact)
  // A secret may be for some paths only: a path that two servers could read differently gets none.
  const hasSecret = replaced.used.length > 0
  if (!read.ok && hasSecret) return refused(badRequest(read.why), request.method, '')
  const mayHave = hasSecret || shared.vault?.searches(verdict.dial) === true
  const isBound = index.secrets.some(({ rule }) => replaced.used.includes(rule.name) && hasPath(rule))
  const otherPath =
    (mayHave ? overrideIn(request, OTHER_PATH) : undefined) ??
    (isBound ? overrideIn(request, SECOND_PATH) : undefined)
  if (otherPath !== undefined) return refused(otherPath, line.method, line.exact)

  // Merged slashes would name another object of S3.
  if (replaced.sign !== undefined && /^[^?]*\/\//.test(path))
    return refused(notSigned('a path with doubled slashes', 'use keys without them'), line.method, line.exact)

  const about = { connection: route.number, ...auditTarget(route.endpoint) }
  const isJudged = isSecure || verdict.requests !== undefined || hasSecret
  if (isJudged) {
    const { rule, source } = judged
    const isRecorded = shared.record({
      kind: 'request-allowed',
      ...about,
      method: line.method,
      path: shownPath(line.exact),
      rule: printRule(rule),
      from: showSource(source),
      secrets: hasSecret ? replaced.used : undefined,
    })
    if (!isRecorded) return { kind: 'unrecorded' }
  }
  route.requests.add(line)
  const since = performance.now()
  const onAnswer = (status: number): void => {
    shared.record({ kind: 'request-answered', ...about, status, ms: Math.round(performance.now() - since) })
  }
  return {
    kind: 'forward',
    done: () => void route.requests.delete(line),
    forwarding: {
      request: { ...request, fields: replaced.fields },
      path: verdict.requests !== undefined || hasSecret ? line.exact + replaced.query : path,
      scan: replaced.scan,
      sign: replaced.sign,
      exchange: replaced.exchange,
      ...(shared.vault !== undefined && { secretIn: shared.vault.secretIn }),
      ...(isJudged && { onAnswer }),
    },
  }
}

/** A secret that is for some paths only. */
const hasPath = ({ to }: Secret): boolean => to.some(({ rule }) => rule.request !== undefined)

/** A path that pen cannot read may mean any other. Its query is in no record either. */
function unreadable(target: string): RequestPath {
  const mark = `${target}?`.indexOf('?')
  return { exact: target.slice(0, mark), readings: ['/oauth/token/'], query: target.slice(mark) }
}

/** Servers read another method or another path from these fields, and some fold `_` and `.`. */
const OTHER_METHOD =
  /^x-(?:http-method-override|http-method|method-override|original-method|forwarded-method)$/
const OTHER_PATH = /^x-(?:original|rewrite|override|forwarded|envoy-original)-(?:url|uri|path)$/
/** WebDAV and object stores copy or move between the path of the request and this one. */
const SECOND_PATH = /^(?:destination|x-copy-from|x-[a-z]+-(?:copy|rename)-source)$/

function overrideIn({ fields, method }: RequestHead, names: RegExp): Refusal | undefined {
  const field = fields.find(
    ({ key, value }) => names.test(key.replaceAll(/[_.]/g, '-')) && value.toUpperCase() !== method,
  )
  return field && badRequest(`the field ${field.key} names another method or path`)
}

/** Frameworks read the method from such a parameter too. */
function otherMethodIn({ query, method }: RequestLine): Refusal | undefined {
  for (const [name, value] of new URLSearchParams(query.replaceAll(';', '&')))
    if (/^(?:_method|x-http-method-override)$/i.test(name) && value.toUpperCase() !== method)
      return badRequest(`the parameter ${name} names another method`)
  return undefined
}

function judgeByRules(
  verdict: Allowed,
  request: RequestHead,
  line: RequestLine,
):
  | ({ readonly ok: true } & Pick<Allowed, 'rule' | 'source'>)
  | { readonly ok: false; readonly refusal: Refusal } {
  if (verdict.requests === undefined) return verdict
  const override =
    overrideIn(request, OTHER_METHOD) ??
    overrideIn(request, OTHER_PATH) ??
    overrideIn(request, SECOND_PATH) ??
    otherMethodIn(line)
  if (override !== undefined) return { ok: false, refusal: override }
  const judged = decideRequest(verdict, line)
  return judged.ok ? judged : { ok: false, refusal: refusalOf(judged) }
}

const refused = (refusal: Refusal, method: string, path: string): Outgoing => ({
  kind: 'refused',
  refusal: { ...refusal, request: { method, path: shownPath(path) } },
})

/** Records are bounded, and a path is hostile. */
const shownPath = (path: string): string => (path.length > 512 ? `${path.slice(0, 512)}…` : path)
