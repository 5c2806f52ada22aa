/** Checks that the server name in a ClientHello is the name that the policy allowed. */
import { parseAddress } from '../../policy/network/address.ts'
import { decideConnection } from '../../policy/network/decide-connection.ts'
import { parseHost } from '../../policy/network/host.ts'
import type { NetworkIndex } from '../../policy/network/network.ts'
import { mustOpen } from '../../policy/network/secret.ts'
import { printDestination } from '../http/target.ts'
import { type Refusal, refusalOf } from '../refusal.ts'
import type { Endpoint } from '../route.ts'

/**
 * Undefined when the ClientHello may pass. `serverName` is hostile. A connection to an allowed address may carry no name,
 * that address, or a name that a rule allows at this port.
 */
export function checkServerName(
  index: NetworkIndex,
  { to, port }: Endpoint,
  serverName: string | undefined,
): { readonly refusal: Refusal; readonly raw?: string } | undefined {
  const expected = printDestination(to)
  if (serverName === undefined) {
    if ('address' in to) return undefined
    const why = `TLS to ${expected} must carry its name, and this ClientHello names no server`
    return { refusal: { reason: 'sni-missing', why, fix: 'use a TLS client that sends the server name' } }
  }
  const host = parseHost(serverName)
  if ('name' in to) {
    if (host.ok && host.value === to.name) return undefined
    return { refusal: mismatch(expected, host.ok ? host.value : undefined), raw: serverName }
  }
  const address = parseAddress(serverName)
  if (address.ok && address.value === to.address) return undefined
  if (!host.ok) return { refusal: mismatch(expected, undefined), raw: serverName }
  const verdict = decideConnection(index, { name: host.value }, port)
  // Rules about the requests of a name must not be avoided through its address.
  if (verdict.ok && mustOpen(index, verdict, true))
    return { refusal: mismatch(expected, host.value), raw: serverName }
  return verdict.ok
    ? undefined
    : { refusal: { ...refusalOf(verdict), reason: 'sni-mismatch' }, raw: serverName }
}

function mismatch(expected: string, other: string | undefined): Refusal {
  return {
    reason: 'sni-mismatch',
    why: `the connection is to ${expected}, and its ClientHello names ${other ?? 'an invalid host name'}`,
    fix: 'connect to the host that the ClientHello names',
  }
}
