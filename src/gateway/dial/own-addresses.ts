/**
 * The addresses of the host. Most are private and refused for that. Services at a public one may rely on a firewall that
 * does not filter local traffic. So a name that resolves to an own address needs a rule that names the address.
 */

import { type Address, parseAddress } from '../../policy/network/address.ts'
import { type Denied, deny } from '../../policy/network/denial.ts'
import { printEndpoint } from '../../policy/network/net-rule.ts'
import type { Port } from '../../policy/network/port.ts'

/** Interfaces may change while a sandbox runs. */
const FRESH_MS = 1000

export class OwnAddresses {
  #known: ReadonlySet<Address> = new Set()
  #since = Number.NEGATIVE_INFINITY

  has(address: Address): boolean {
    const now = performance.now()
    if (now - this.#since > FRESH_MS) {
      this.#since = now
      const { networkInterfaces } = process.getBuiltinModule('node:os')
      this.#known = new Set(
        Object.values(networkInterfaces())
          .flatMap(list => list ?? [])
          .map(({ address: text }) => parseAddress(text.replace(/%.*/, '')))
          .flatMap(parsed => (parsed.ok ? [parsed.value] : [])),
      )
    }
    return this.#known.has(address)
  }
}

export const denyOwn = (address: Address, port: Port): Denied =>
  deny(
    'address-not-allowed',
    `${address} is an address of this machine, and no rule names it`,
    `pen allow ${printEndpoint({ kind: 'address', address }, port)}`,
  )
