/**
 * Replies to refused or failed connections in HTTP, TLS and SSH. Agents read them, so a denial says that it is policy,
 * that a retry is useless, and what to ask the user for. It repeats nothing from the request except canonical names.
 */
import type { Refusal } from '../refusal.ts'

/** The denial in one line. */
export const denialLine = ({ why, fix, reason }: Refusal): string =>
  `pen refused this connection: ${why}. This is the network policy of the sandbox. ` +
  `${fix.startsWith('pen ') ? 'The user can allow it outside the sandbox' : 'To change this'}: ${fix} (${reason})`

export function denialPage(refusal: Refusal, hasBody = true): string {
  const isCommand = refusal.fix.startsWith('pen ')
  const lines = [
    `pen refused this connection: ${refusal.why}.`,
    '',
    'This is the network policy of the sandbox, not a network or server error.',
    'Do not retry, and do not look for a way around it: the policy applies to every connection.',
    isCommand
      ? 'If the task needs it, ask the user to run this outside the sandbox:'
      : 'If the task needs it, do this instead:',
    '',
    `    ${refusal.fix}`,
    '',
    `reason: ${refusal.reason}`,
  ]
  return page(refusal.status ?? 403, `x-pen-denied: ${refusal.reason}`, lines, hasBody)
}

interface Failure {
  readonly why: string
  readonly reason: string
}

/** The policy allowed the connection, so an agent must not read this as a denial. */
export function failurePage(failure: Failure, hasBody = true): string {
  const lines = [
    `pen allowed this connection, but it failed: ${failure.why}.`,
    '',
    'This is not the network policy. The server or the network outside the sandbox failed, or the name is wrong.',
    '',
    `reason: ${failure.reason}`,
  ]
  const status = failure.reason === 'upstream-timeout' ? 504 : 502
  return page(status, `x-pen-error: ${failure.reason}`, lines, hasBody)
}

export const failureLine = ({ why, reason }: Failure): string =>
  `pen allowed this connection, but it failed: ${why} (${reason})`

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

export const startsSsh = (bytes: Buffer): boolean => bytes.toString('latin1', 0, 8) === 'SSH-2.0-'

/** RFC 4253: a server version, then an unencrypted SSH_MSG_DISCONNECT with the reason BY_APPLICATION. */
export function sshDisconnect(line: string): Buffer {
  const text = Buffer.from(line)
  const payload = Buffer.alloc(1 + 4 + 4 + text.length + 4)
  payload.writeUInt8(1, 0)
  payload.writeUInt32BE(11, 1)
  payload.writeUInt32BE(text.length, 5)
  text.copy(payload, 9)
  // At least four bytes, and with the five header bytes a multiple of eight.
  const padding = 4 + ((8 - ((5 + payload.length + 4) % 8)) % 8)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(1 + payload.length + padding, 0)
  head.writeUInt8(padding, 4)
  return Buffer.concat([Buffer.from('SSH-2.0-pen\r\n'), head, payload, Buffer.alloc(padding)])
}
