import { type Address, addressBytes, printAddress } from '../../policy/network/address.ts'
import type { Host } from '../../policy/network/host.ts'

/**
 * The block of addresses that stand for names inside a sandbox and mean nothing outside it. RFC 2544: for measurements between networks,
 * routed nowhere. Its first and last address are never given out: 131,070 names.
 */
const POOL = { network: [198, 18, 0, 0], prefix: 15 } as const

export interface NameTableOptions {
  /** No more names than this, however large the pool. */
  readonly maxNames?: number
  /** Characters of all names together: what a sandbox can make pen remember. */
  readonly maxCharacters?: number
  /** Names that the policy may allow still get one of these when the rest was used up by others. */
  readonly reserve?: number
  readonly isReserved?: (name: Host) => boolean
}

/**
 * Which address stands for which name in one sandbox. An address serves one name for the sandbox's whole life: a
 * program that kept an old answer can never reach another name by it. Names come from the sandbox, which may ask for
 * as many as it likes: it can use up its own book and nothing else.
 */
export class NameTable {
  readonly #first: number
  readonly #size: number
  readonly #names: Host[] = []
  readonly #indexes = new Map<Host, number>()
  readonly #maxCharacters: number
  readonly #reserve: number
  readonly #isReserved: ((name: Host) => boolean) | undefined
  #characters = 0

  constructor(options: NameTableOptions = {}) {
    const { maxNames = 131_070, maxCharacters = 8 * 1024 * 1024 } = options
    this.#first = toNumber(POOL.network) + 1
    this.#size = Math.min(2 ** (32 - POOL.prefix) - 2, maxNames)
    this.#maxCharacters = maxCharacters
    this.#reserve = Math.min(options.reserve ?? 4096, this.#size >> 1)
    this.#isReserved = options.isReserved
  }

  /** How many names have an address. */
  get size(): number {
    return this.#names.length
  }

  /** Undefined when the pool is used up. */
  addressFor(name: Host): Address | undefined {
    const number = this.numberFor(name)
    return number === undefined ? undefined : printAddress(toBytes(number))
  }

  /** The same address as a number of 32 bits. */
  numberFor(name: Host): number | undefined {
    const index = this.#indexes.get(name) ?? this.#add(name)
    return index === undefined ? undefined : this.#first + index
  }

  /** Undefined for every address that no look-up gave out. */
  nameOf(address: Address): Host | undefined {
    const bytes = addressBytes(address)
    return bytes.length === 4 ? this.#names[toNumber(bytes) - this.#first] : undefined
  }

  #add(name: Host): number | undefined {
    const index = this.#names.length
    const isOpen = index < this.#size - this.#reserve && this.#characters + name.length <= this.#maxCharacters
    if (!isOpen && (index >= this.#size || !this.#isReserved?.(name))) return undefined
    this.#names.push(name)
    this.#indexes.set(name, index)
    this.#characters += name.length
    return index
  }
}

function toNumber([a = 0, b = 0, c = 0, d = 0]: readonly number[]): number {
  return a * 2 ** 24 + (b << 16) + (c << 8) + d
}

const toBytes = (n: number): number[] => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255]
