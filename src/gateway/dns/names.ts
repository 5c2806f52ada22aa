import { type Address, addressBytes } from '../../policy/network/address.ts'
import type { Host } from '../../policy/network/host.ts'

/**
 * The block of synthetic addresses for names in a sandbox is 198.18.0.0/15. RFC 2544 reserves it for benchmarks, so it is
 * not routed. Its first and last address are not used.
 */
const FIRST = toNumber([198, 18, 0, 1])
const POOL_SIZE = 131_070

export interface NameTableOptions {
  /** Fewer names than the pool has addresses. */
  readonly maxNames?: number
  /** Characters of all names together. Limits the memory that a sandbox can make pen use. */
  readonly maxCharacters?: number
  /** Addresses that are kept for reserved names when all others are used up. */
  readonly reserve?: number
  /** Whether the policy may allow the name. */
  readonly isReserved?: (name: Host) => boolean
}

/**
 * Maps names to synthetic addresses for one sandbox. An address belongs to one name for the life of the sandbox, so a
 * cached answer never leads to another name. A hostile sandbox can use up only its own table.
 */
export class NameTable {
  readonly #names: Host[] = []
  readonly #indexes = new Map<Host, number>()
  readonly #size: number
  readonly #maxCharacters: number
  readonly #reserve: number
  readonly #isReserved: (name: Host) => boolean
  #characters = 0

  constructor({
    maxNames = POOL_SIZE,
    maxCharacters = 8 * 1024 * 1024,
    reserve = 4096,
    isReserved = () => false,
  }: NameTableOptions = {}) {
    this.#size = maxNames
    this.#maxCharacters = maxCharacters
    this.#reserve = Math.min(reserve, maxNames >> 1)
    this.#isReserved = isReserved
  }

  get size(): number {
    return this.#names.length
  }

  /** The address as a 32-bit number. Undefined when the pool is used up. */
  numberFor(name: Host): number | undefined {
    const index = this.#indexes.get(name) ?? this.#add(name)
    return index === undefined ? undefined : FIRST + index
  }

  /** Undefined for an address that no lookup returned. */
  nameOf(address: Address): Host | undefined {
    const bytes = addressBytes(address)
    return bytes.length === 4 ? this.#names[toNumber(bytes) - FIRST] : undefined
  }

  #add(name: Host): number | undefined {
    const index = this.#names.length
    const isOpen = index < this.#size - this.#reserve && this.#characters + name.length <= this.#maxCharacters
    if (!isOpen && (index >= this.#size || !this.#isReserved(name))) return undefined
    this.#names.push(name)
    this.#indexes.set(name, index)
    this.#characters += name.length
    return index
  }
}

function toNumber([a = 0, b = 0, c = 0, d = 0]: readonly number[]): number {
  return a * 2 ** 24 + (b << 16) + (c << 8) + d
}
