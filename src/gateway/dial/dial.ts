/**
 * Dials a destination that the policy allowed. A name is resolved here, after the verdict. Each resolved address is
 * checked, and the checked address itself is dialled, so that DNS rebinding has no effect. Addresses that fail the check
 * are skipped: a name with a public and a private address is reached at the public one. When none is left, the
 * connection is refused.
 */
import { errnoOf } from '../../base/error.ts'
import { type Address, LOOPBACK, parseAddress, printAddress } from '../../policy/network/address.ts'
import { checkDial, type Dial } from '../../policy/network/decide-connection.ts'
import { type Denied, deny } from '../../policy/network/denial.ts'
import { printEndpoint } from '../../policy/network/net-rule.ts'
import type { NetworkIndex } from '../../policy/network/network.ts'
import type { Port } from '../../policy/network/port.ts'
import type { NetworkPolicy } from '../../policy/policy.ts'
import type { GatewayLimits } from '../limits.ts'
import type { BufferBudget } from '../stream/buffer-budget.ts'
import { ByteStream } from '../stream/byte-stream.ts'
import type { StreamSocket } from '../stream/stream-socket.ts'
import { type Cancellation, type DialFailure, type DialResult, failed } from './dial-result.ts'
import type { Resolver } from './resolve.ts'
import { dialThroughProxy } from './upstream-proxy.ts'

/** `done` is called once, asynchronously: with undefined when connected, else with the error. */
export type Connect = (address: Address, port: Port, done: (error: unknown) => void) => StreamSocket

/** Parallel attempts of one dial. Beyond it the oldest one is closed. */
const MAX_ATTEMPTS = 4

export interface DialerOptions {
  readonly network: () => NetworkPolicy
  readonly resolver: Resolver
  readonly limits: GatewayLimits
  readonly connect: Connect
  readonly buffers?: BufferBudget
}

export class Dialer {
  readonly #options: DialerOptions
  readonly #dials: Semaphore
  readonly #own = new OwnAddresses()
  /** Parallel attempts beyond the first of each dial, over all dials. */
  #extraAttempts = 0

  constructor(options: DialerOptions) {
    this.#options = options
    this.#dials = new Semaphore(options.limits.maxDialling)
  }

  get inFlight(): number {
    return this.#dials.taken
  }

  async dial(
    dial: Dial,
    cancellation: Cancellation,
    indexOf: IndexOf = ({ index }) => index,
  ): Promise<DialResult> {
    await this.#dials.acquire()
    try {
      return cancellation.isCancelled ? GIVEN_UP : await this.#dial(dial, cancellation, indexOf)
    } finally {
      this.#dials.release()
    }
  }

  async #dial(dial: Dial, cancellation: Cancellation, indexOf: IndexOf): Promise<DialResult> {
    const { network, resolver } = this.#options
    if (dial.kind === 'host-service') return this.connectAny(LOOPBACK_ADDRESSES, dial.port, cancellation)
    const proxy = network().upstreamProxy
    if (proxy !== null)
      return dialThroughProxy(
        (to, port) => this.connectAny(to, port, cancellation),
        resolver,
        new URL(proxy),
        dial,
      )
    if (dial.kind === 'address') return this.#dialChecked([dial.address], dial, cancellation, indexOf)
    const resolution = await resolver.resolve(dial.host)
    if (cancellation.isCancelled) return GIVEN_UP
    if (!resolution.ok) return failed(resolution.reason, resolution.why)
    return this.#dialChecked(resolution.addresses, dial, cancellation, indexOf)
  }

  #dialChecked(
    addresses: readonly Address[],
    dial: Dial,
    cancellation: Cancellation,
    indexOf: IndexOf,
  ): Promise<DialResult> {
    // The current policy may be narrower than the one that allowed the name.
    const index = indexOf(this.#options.network())
    const good: Address[] = []
    let denied: Denied | undefined
    for (const address of addresses) {
      const check = this.check(index, address, dial)
      if (check.ok) good.push(address)
      else denied ??= check
    }
    if (good.length > 0) return this.connectAny(good, dial.port, cancellation)
    return Promise.resolve(
      denied === undefined ? failed('name-not-found', 'no address') : { kind: 'denied', denied },
    )
  }

  /** Whether the policy lets this address be dialled. */
  check(index: NetworkIndex, address: Address, dial: Dial): { readonly ok: true } | Denied {
    const check = checkDial(index, address, dial)
    if (!check.ok || dial.kind !== 'name' || !this.#own.has(address)) return check
    return index.addresses.get(address)?.allow.has(dial.port) ? check : denyOwn(address, dial.port)
  }

  /**
   * Tries the addresses in order, and starts the next one while a slow one is pending. The first that connects wins. A
   * hostile zone chooses the number of addresses and each attempt costs a descriptor, so parallel attempts are limited.
   */
  connectAny(addresses: readonly Address[], port: Port, cancellation: Cancellation): Promise<DialResult> {
    const { connect: open, limits, buffers } = this.#options
    return new Promise(resolve => {
      const attempts = new Set<StreamSocket>()
      let next = 0
      let extra = 0
      let stagger: ReturnType<typeof setTimeout> | undefined
      let lastError: unknown
      const countExtra = (): void => {
        const now = Math.max(attempts.size - 1, 0)
        this.#extraAttempts += now - extra
        extra = now
      }
      const settle = (result: DialResult): void => {
        clearTimeout(stagger)
        clearTimeout(deadline)
        cancellation.onCancel = undefined
        for (const socket of attempts) socket.destroy()
        attempts.clear()
        countExtra()
        resolve(result)
      }
      const tryInParallel = (): void => {
        if (this.#extraAttempts >= limits.maxBeside) {
          stagger = setTimeout(tryInParallel, limits.staggerMs)
          return
        }
        const [oldest] = attempts
        if (oldest !== undefined && attempts.size >= MAX_ATTEMPTS && attempts.delete(oldest)) oldest.destroy()
        tryNext()
      }
      const tryNext = (): void => {
        clearTimeout(stagger)
        countExtra()
        const address = addresses[next++]
        if (address === undefined) {
          if (attempts.size === 0) settle(unreachable(lastError))
          return
        }
        const socket = open(address, port, error => {
          if (!attempts.delete(socket)) return socket.destroy()
          if (error === undefined)
            return settle({ kind: 'connected', stream: new ByteStream(socket, buffers), address })
          lastError = error
          tryNext()
        })
        attempts.add(socket)
        countExtra()
        if (next < addresses.length) stagger = setTimeout(tryInParallel, limits.staggerMs)
      }
      const deadline = setTimeout(
        () => settle(failed('upstream-timeout', 'the server did not answer')),
        limits.connectMs,
      )
      cancellation.onCancel = () => settle(GIVEN_UP)
      tryNext()
    })
  }
}

/** Grants a limited number of permits. Further callers wait in order. */
class Semaphore {
  readonly #permits: number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(permits: number) {
    this.#permits = permits
  }

  get taken(): number {
    return this.#taken
  }

  acquire(): Promise<void> {
    if (this.#taken < this.#permits) {
      this.#taken++
      return Promise.resolve()
    }
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  release(): void {
    // The permit passes to the next caller without becoming free in between.
    const next = this.#waiting.shift()
    if (next === undefined) this.#taken--
    else next()
  }
}

/** Interfaces may change while a sandbox runs. */
const FRESH_MS = 1000

/**
 * The addresses of the host. Most are private and refused for that. Services at a public one may rely on a firewall that
 * does not filter local traffic. So a name that resolves to an own address needs a rule that names the address.
 */
class OwnAddresses {
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

const denyOwn = (address: Address, port: Port): Denied =>
  deny(
    'address-not-allowed',
    `${address} is an address of this machine, and no rule names it`,
    `pen allow ${printEndpoint({ kind: 'address', address }, port)}`,
  )

/** The rules that apply to one dial. */
type IndexOf = (network: NetworkPolicy) => NetworkIndex

const GIVEN_UP = failed('given-up', 'the client went away')

/** The addresses of `host.pen.internal`. Only a rule for that name leads here. */
const LOOPBACK_ADDRESSES = [printAddress(LOOPBACK.ip), printAddress(LOOPBACK.ip6)]

function unreachable(error: unknown): DialFailure {
  const errno = errnoOf(error)
  if (errno === 'EMFILE' || errno === 'ENFILE')
    return failed('out-of-descriptors', 'pen has no file descriptor left for it')
  return failed(
    'upstream-unreachable',
    `the server could not be reached${errno === undefined ? '' : ` (${errno})`}`,
  )
}
