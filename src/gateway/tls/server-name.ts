/** The name that was allowed is the name that is spoken. */
import { parseAddress } from '../../policy/network/address.ts'
import { decideConnection } from '../../policy/network/decide-connection.ts'
import { parseHost } from '../../policy/network/host.ts'
import type { NetworkIndex } from '../../policy/network/network.ts'
import { printDestination } from '../http/target.ts'
import { type Refusal, refusalOf } from '../refusal.ts'
import type { Endpoint } from '../route.ts'

/**
 * Undefined when the ClientHello may go. `spoken` is hostile. A connection to an address that a rule names may speak of
 * no name, of that address, or of a name that is allowed by itself at this port.
 */
export function checkServerName(
  index: NetworkIndex,
  { to, port }: Endpoint,
  spoken: string | undefined,
): { readonly refusal: Refusal; readonly raw?: string } | undefined {
  const expected = printDestination(to)
  if (spoken === undefined) {
    if ('address' in to) return undefined
    const why = `TLS to ${expected} has to carry its name, and this ClientHello names no server`
    return { refusal: { reason: 'sni-missing', why, fix: 'use a TLS client that sends the server name' } }
  }
  const host = parseHost(spoken)
  if ('name' in to) {
    if (host.ok && host.value === to.name) return undefined
    return { refusal: mismatch(expected, host.ok ? host.value : undefined), raw: spoken }
  }
  const address = parseAddress(spoken)
  if (address.ok && address.value === to.address) return undefined
  if (!host.ok) return { refusal: mismatch(expected, undefined), raw: spoken }
  const verdict = decideConnection(index, { name: host.value }, port)
  return verdict.ok ? undefined : { refusal: { ...refusalOf(verdict), reason: 'sni-mismatch' }, raw: spoken }
}

function mismatch(expected: string, other: string | undefined): Refusal {
  const spoken = other === undefined ? 'something that is no host name' : other
  return {
    reason: 'sni-mismatch',
    why: `the connection is to ${expected}, and its ClientHello names ${spoken}`,
    fix: 'connect to the name that is meant',
  }
}
