/**
 * The addresses of the machine that pen runs on. Most of them are private and refused as such; a public one is the
 * machine's all the same, and behind it may listen what only a firewall keeps from the world. A name that leads there
 * came from outside, so it needs a rule that names the address.
 */

import { type Address, parseAddress } from '../../policy/network/address.ts'
import { type Denied, deny } from '../../policy/network/denial.ts'
import { printEndpoint } from '../../policy/network/net-rule.ts'
import type { Port } from '../../policy/network/port.ts'

/** Networks come and go while a sandbox runs. */
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
