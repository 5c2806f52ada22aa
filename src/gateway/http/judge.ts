/** Finds the destination of a request, and checks that target and Host agree on it. All of it is hostile. */
import { HTTP_PORT, HTTPS_PORT, type Port } from '../../policy/network/port.ts'
import { badRequest, type Refusal } from '../refusal.ts'
import type { Endpoint } from '../route.ts'
import type { RequestHead } from './head.ts'
import {
  parseAuthority,
  parseRequestTarget,
  printAuthority,
  printDestination,
  sameDestination,
} from './target.ts'

export type HttpMode =
  /** The program dialled this endpoint, and every request must be for it. */
  | { readonly kind: 'fixed'; readonly endpoint: Endpoint; readonly isSecure: boolean }
  /** The program uses the gateway as a proxy, and every request names its destination. */
  | { readonly kind: 'proxy' }

export type Judgement =
  | { readonly kind: 'forward'; readonly endpoint: Endpoint; readonly path: string; readonly host: string }
  | { readonly kind: 'connect'; readonly endpoint: Endpoint }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly raw?: string | undefined }

/** These methods echo the request, which helps only attackers. */
const ECHOING = new Set(['TRACE', 'TRACK'])

export function judgeRequest(request: RequestHead, mode: HttpMode): Judgement {
  if (ECHOING.has(request.method)) return refused(badRequest(`the method ${request.method}`, 405))
  if (request.method === 'CONNECT') return judgeConnect(request, mode)
  return mode.kind === 'proxy' ? judgeProxied(request) : judgeFixed(request, mode.endpoint, mode.isSecure)
}

function judgeFixed(request: RequestHead, endpoint: Endpoint, isSecure: boolean): Judgement {
  const target = parseRequestTarget(request.method, request.target)
  if (!target.ok) return refused(badRequest(target.why))
  const { value } = target
  if (value.form === 'absolute') {
    const { to, port } = value.authority
    if (isSecure || !sameDestination(to, endpoint.to) || (port ?? HTTP_PORT) !== endpoint.port)
      return mismatch(endpoint, 'target', request.target)
  }
  const path = value.form === 'asterisk' ? '*' : value.path
  if (request.host === undefined)
    return { kind: 'forward', endpoint, path, host: hostFor(endpoint, isSecure ? HTTPS_PORT : HTTP_PORT) }
  const host = parseAuthority(request.host)
  if (!host.ok) return { kind: 'refused', refusal: badRequest(`the Host: ${host.why}`), raw: request.host }
  const { to, port } = host.value
  if (!sameDestination(to, endpoint.to) || (port !== undefined && port !== endpoint.port))
    return mismatch(endpoint, 'Host', request.host)
  // Keeps or omits the port as the client did, because signatures cover the Host.
  return { kind: 'forward', endpoint, path, host: printAuthority(to, port) }
}

/** The absolute target decides. The gateway writes the Host from it. */
function judgeProxied(request: RequestHead): Judgement {
  const target = parseRequestTarget(request.method, request.target)
  if (!target.ok) return refused(badRequest(target.why))
  if (target.value.form !== 'absolute') return refused(NOT_PROXY)
  const { authority, path } = target.value
  const endpoint = { to: authority.to, port: authority.port ?? HTTP_PORT }
  return { kind: 'forward', endpoint, path, host: hostFor(endpoint) }
}

function judgeConnect(request: RequestHead, mode: HttpMode): Judgement {
  if (mode.kind === 'fixed') return mismatch(mode.endpoint, 'CONNECT', request.target)
  if (request.framing.kind !== 'none') return refused(badRequest('a CONNECT with a body'))
  const authority = parseAuthority(request.target)
  if (!authority.ok) return refused(badRequest(`the CONNECT target: ${authority.why}`))
  const { to, port } = authority.value
  if (port === undefined) return refused(badRequest('a CONNECT without a port'))
  const endpoint: Endpoint = { to, port }
  if (request.host === undefined) return { kind: 'connect', endpoint }
  const host = parseAuthority(request.host)
  const agrees =
    host.ok &&
    sameDestination(host.value.to, to) &&
    (host.value.port === undefined || host.value.port === port)
  return agrees ? { kind: 'connect', endpoint } : mismatch(endpoint, 'Host', request.host)
}

const hostFor = ({ to, port }: Endpoint, usual: Port = HTTP_PORT): string =>
  printAuthority(to, port === usual ? undefined : port)

const refused = (refusal: Refusal): Judgement => ({ kind: 'refused', refusal })

export const NOT_PROXY: Refusal = {
  reason: 'not-a-proxy-request',
  why: 'this is the proxy of the sandbox, and the request names no destination',
  fix: 'use it as an HTTP proxy, with CONNECT or an http:// target',
  status: 400,
}

function mismatch(endpoint: Endpoint, what: 'Host' | 'target' | 'CONNECT', raw: string): Judgement {
  const refusal: Refusal = {
    reason: 'host-mismatch',
    why: `the connection is to ${printDestination(endpoint.to)}:${endpoint.port}, and its ${what} names another host`,
    fix: 'connect to the host that the request names',
  }
  return { kind: 'refused', refusal, raw }
}
