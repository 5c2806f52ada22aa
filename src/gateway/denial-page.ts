/**
 * What a program is told in HTTP or TLS. An agent reads it, so it says that this is policy and not a fault, that trying
 * again is no use, and whom to ask for what. Nothing of the request is repeated; names in it are canonical.
 */
import type { DialFailure } from './dial-result.ts'
import type { Refusal } from './refusal.ts'

export function denialPage(refusal: Refusal, hasBody = true): string {
  const isCommand = refusal.cure.startsWith('pen ')
  const lines = [
    `pen refused this connection: ${refusal.why}.`,
    '',
    'This is the network policy of the sandbox, not a fault of the network or of the server.',
    'Do not retry, and do not look for a way around it: every way out is judged alike.',
    isCommand
      ? 'If the task needs it, ask the user to run this outside the sandbox:'
      : 'If the task needs it, this is what would change the answer:',
    '',
    `    ${refusal.cure}`,
    '',
    `reason: ${refusal.reason}`,
  ]
  return page(refusal.status ?? 403, `x-pen-denied: ${refusal.reason}`, lines, hasBody)
}

/** The policy allowed it: an agent must not take this for a denial. */
export function failurePage(
  failure: Pick<DialFailure, 'why'> & { readonly reason: string },
  hasBody = true,
): string {
  const lines = [
    `pen allowed this connection, but it failed: ${failure.why}.`,
    '',
    'This is not the network policy. The server or the network outside the sandbox is at fault, or the name is wrong.',
    '',
    `reason: ${failure.reason}`,
  ]
  return page(
    failure.reason === 'upstream-timeout' ? 504 : 502,
    `x-pen-error: ${failure.reason}`,
    lines,
    hasBody,
  )
}

const REASON_PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  414: 'URI Too Long',
  421: 'Misdirected Request',
  431: 'Request Header Fields Too Large',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
}

function page(status: number, mark: string, lines: readonly string[], hasBody: boolean): string {
  const body = `${lines.join('\n')}\n`
  const head = [
    `HTTP/1.1 ${status} ${REASON_PHRASES[status] ?? 'Error'}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body, 'latin1')}`,
    'X-Content-Type-Options: nosniff',
    'Cache-Control: no-store',
    mark,
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${hasBody ? body : ''}`
}

const alert = (description: number): Buffer => Buffer.from([21, 3, 3, 0, 2, 2, description])

/** RFC 8446: fatal alerts. */
export const ACCESS_DENIED = alert(49)
export const INTERNAL_ERROR = alert(80)
