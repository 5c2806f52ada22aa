/**
 * Dials what the policy allowed. A name is resolved here, after the verdict; every answer is checked and the checked
 * address itself is dialled, so that no second look-up can lead elsewhere. Answers that may not be dialled are left
 * out, and when none remains the connection is refused: a name with a public and a private address is still reached,
 * at the public one.
 */
import { errnoOf } from '../../base/error.ts'
import { type Address, parseAddress } from '../../policy/network/address.ts'
import { checkDial, type Dial } from '../../policy/network/decide-connection.ts'
import type { Denied } from '../../policy/network/denial.ts'
import type { NetworkIndex } from '../../policy/network/network.ts'
import type { Port } from '../../policy/network/port.ts'
import type { NetworkPolicy } from '../../policy/policy.ts'
import type { GatewayLimits } from '../limits.ts'
import { Semaphore } from '../stream/semaphore.ts'
import type { StreamSocket } from '../stream/stream-socket.ts'
import { type Cancellation, type DialFailure, type DialResult, failed } from './dial-result.ts'
import { denyOwn, OwnAddresses } from './own-addresses.ts'
import type { Resolver } from './resolve.ts'
import { dialThroughProxy } from './upstream-proxy.ts'

/** `done` is called once, later: with nothing when it is connected, or with what went wrong. */
export type Connect = (address: Address, port: Port, done: (error: unknown) => void) => StreamSocket

/** Of one dial, at the same time: then the oldest has had its time. */
const MOST_ATTEMPTS = 4

export interface DialerOptions {
  readonly network: () => NetworkPolicy
  readonly resolver: Resolver
  readonly limits: GatewayLimits
  readonly connect: Connect
}

export class Dialer {
  readonly #options: DialerOptions
  readonly #dials: Semaphore
  readonly #own = new OwnAddresses()
  /** Attempts beside the first one of their dial, all dials together. */
  #beside = 0

  constructor(options: DialerOptions) {
    this.#options = options
    this.#dials = new Semaphore(options.limits.maxDialling)
  }

  get inFlight(): number {
    return this.#dials.inside
  }

  async dial(dial: Dial, cancellation: Cancellation, indexOf: IndexOf = plainIndex): Promise<DialResult> {
    await this.#dials.enter()
    try {
      return cancellation.isCancelled ? GIVEN_UP : await this.#dial(dial, cancellation, indexOf)
    } finally {
      this.#dials.leave()
    }
  }

  async #dial(dial: Dial, cancellation: Cancellation, indexOf: IndexOf): Promise<DialResult> {
    const { network, resolver } = this.#options
    if (dial.kind === 'host-service') return this.connectAny(LOOPBACK, dial.port, cancellation)
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
    // The policy in force now, which may be narrower than the one that allowed the name.
    const index = indexOf(this.#options.network())
    const good: Address[] = []
    let refusal: { readonly denied: Denied; readonly address: Address } | undefined
    for (const address of addresses) {
      const check = this.check(index, address, dial)
      if (check.ok) good.push(address)
      else refusal ??= { denied: check, address }
    }
    if (good.length > 0) return this.connectAny(good, dial.port, cancellation)
    return Promise.resolve(
      refusal === undefined ? failed('name-not-found', 'no address') : { kind: 'denied', ...refusal },
    )
  }

  /** Whether this address may be dialled for what was allowed. */
  check(index: NetworkIndex, address: Address, dial: Dial): { readonly ok: true } | Denied {
    const check = checkDial(index, address, dial)
    if (!check.ok || dial.kind !== 'name' || !this.#own.has(address)) return check
    return index.addresses.get(address)?.allow.has(dial.port) ? check : denyOwn(address, dial.port)
  }

  /**
   * Tries the addresses in order, the next one beside a slow one; the first that answers wins. How many addresses there
   * are is for a hostile zone to say, and each attempt costs a descriptor: so only a few stand beside each other.
   */
  connectAny(addresses: readonly Address[], port: Port, cancellation: Cancellation): Promise<DialResult> {
    const { connect: open, limits } = this.#options
    return new Promise(resolve => {
      const open_ = new Set<StreamSocket>()
      let next = 0
      let beside = 0
      let stagger: ReturnType<typeof setTimeout> | undefined
      let lastError: unknown
      const countBeside = (): void => {
        const now = Math.max(open_.size - 1, 0)
        this.#beside += now - beside
        beside = now
      }
      const settle = (result: DialResult): void => {
        clearTimeout(stagger)
        clearTimeout(deadline)
        cancellation.onCancel = undefined
        for (const socket of open_) socket.destroy()
        open_.clear()
        countBeside()
        resolve(result)
      }
      const tryBeside = (): void => {
        if (this.#beside >= limits.maxBeside) {
          stagger = setTimeout(tryBeside, limits.staggerMs)
          return
        }
        const [oldest] = open_
        if (oldest !== undefined && open_.size >= MOST_ATTEMPTS && open_.delete(oldest)) oldest.destroy()
        tryNext()
      }
      const tryNext = (): void => {
        clearTimeout(stagger)
        countBeside()
        const address = addresses[next++]
        if (address === undefined) {
          if (open_.size === 0) settle(unreachable(lastError))
          return
        }
        const socket = open(address, port, error => {
          if (!open_.delete(socket)) return socket.destroy()
          if (error === undefined) return settle({ kind: 'connected', socket, address })
          lastError = error
          tryNext()
        })
        open_.add(socket)
        countBeside()
        if (next < addresses.length) stagger = setTimeout(tryBeside, limits.staggerMs)
      }
      const deadline = setTimeout(
        () => settle(failed('upstream-timeout', 'no answer from the server')),
        limits.connectMs,
      )
      cancellation.onCancel = () => settle(GIVEN_UP)
      tryNext()
    })
  }
}

/** The rules that count for one dial. */
type IndexOf = (network: NetworkPolicy) => NetworkIndex

const plainIndex: IndexOf = ({ index }) => index

const GIVEN_UP = failed('given-up', 'the client went away')

/** `host.pen.internal`: the one name for these, and only by its own rule. */
const LOOPBACK: readonly Address[] = ['127.0.0.1', '::1'].flatMap(text => {
  const address = parseAddress(text)
  return address.ok ? [address.value] : []
})

function unreachable(error: unknown): DialFailure {
  const errno = errnoOf(error)
  if (errno === 'EMFILE' || errno === 'ENFILE')
    return failed('out-of-descriptors', 'pen has no file descriptor left for it')
  return failed(
    'upstream-unreachable',
    `the server could not be reached${errno === undefined ? '' : ` (${errno})`}`,
  )
}
