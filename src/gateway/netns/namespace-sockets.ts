/**
 * A pool of unconnected sockets in the network namespace of a running sandbox. They dial the sandbox's loopback. The
 * sandbox takes no part in creating them and gets none of them.
 */
import { PenError } from '../../base/error.ts'
import { close, openPath } from '../../base/kernel/descriptor.ts'
import { hasCapabilities } from '../../base/kernel/host-root.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'
import { ownProgram } from '../../base/own-program.ts'
import { DOOR_MODE, SOCKETS } from './door-mode.ts'
import { type DoorLocation, entryByDescriptor, entryFor, inNamespace } from './namespace.ts'
import { openInChild, type Starter, starterOf, startHere } from './open.ts'
import { openSockets } from './sockets.ts'

export interface SocketPair {
  readonly v4: number
  /** Undefined when the kernel has no IPv6. */
  readonly v6: number | undefined
}

/** Any process of the sandbox, or its network namespace behind the root helper. */
export type SandboxNetwork = { readonly pid: number } | Extract<DoorLocation, { readonly kind: 'by-helper' }>

/** Sockets per batch. Without root, each batch costs a process. */
const BATCH = 32
/** Below this number the pool is refilled in the background. */
const REFILL_BELOW = 16

const CAP_SYS_ADMIN = 21
/** `ioctl_ns(2)`: opens the user namespace that owns a namespace. */
const NS_GET_USERNS = 0xb701

export class NamespaceSockets {
  /** A descriptor, because pids are reused. */
  readonly #network: number
  readonly #owner: number | undefined
  /** How to start a process in the namespace. Undefined when this process can enter it. */
  readonly #child: { readonly prefix: readonly string[]; readonly start: Starter } | undefined
  readonly #ready: SocketPair[] = []
  #filling: Promise<void> | undefined
  #isClosed: boolean = false

  constructor(sandbox: SandboxNetwork) {
    try {
      if ('pid' in sandbox) {
        this.#network = openPath(`/proc/${sandbox.pid}/ns/net`)
        if (hasCapabilities(CAP_SYS_ADMIN)) return
        this.#owner = ownerOf(this.#network)
        // The child needs no capabilities there, so it keeps its outside user id.
        this.#child = { prefix: entryByDescriptor(this.#network, this.#owner, 'own-id'), start: startHere }
      } else {
        this.#network = openPath(`/proc/self/fd/${sandbox.network}`)
        this.#child = { prefix: entryFor(sandbox).prefix, start: starterOf(sandbox) }
      }
    } catch (cause) {
      throw notEntered(cause)
    }
  }

  /** Fills the pool, so that errors show now. */
  async prepare(): Promise<void> {
    if (this.#isClosed) throw ENDED()
    if (this.#ready.length > 0) return
    this.#filling ??= this.#fill()
    await this.#filling
  }

  /** The caller closes the sockets. */
  async take(): Promise<SocketPair> {
    for (;;) {
      if (this.#isClosed) throw ENDED()
      const pair = this.#ready.pop()
      if (this.#ready.length < REFILL_BELOW) this.#filling ??= this.#fill()
      if (pair !== undefined) return pair
      await this.#filling
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const pair of this.#ready.splice(0)) closePair(pair)
    for (const fd of [this.#network, this.#owner]) if (fd !== undefined) close(fd)
  }

  #fill(): Promise<void> {
    const filling = this.#make()
      .then(pairs => {
        if (this.#isClosed) pairs.forEach(closePair)
        else this.#ready.push(...pairs)
      })
      .finally(() => {
        this.#filling = undefined
      })
    // A caller that awaits the batch gets the error. Others take a socket from the pool.
    filling.catch(() => undefined)
    return filling
  }

  async #make(): Promise<SocketPair[]> {
    try {
      if (this.#child === undefined) return inPairs(inNamespace(this.#network, () => openSockets(BATCH)))
      const { prefix, start } = this.#child
      const argv = [...prefix, ...ownProgram(), DOOR_MODE, SOCKETS, String(BATCH)]
      return inPairs(await openInChild(argv, start))
    } catch (cause) {
      throw notEntered(cause)
    }
  }
}

const ENDED = (): PenError => new PenError('STATE', { what: 'the sandbox has ended' })

function closePair({ v4, v6 }: SocketPair): void {
  close(v4)
  if (v6 !== undefined) close(v6)
}

const ownerOf = (namespace: number): number =>
  succeeded('find the user namespace', tryCall('ioctl', namespace, NS_GET_USERNS, null))

function inPairs(opened: ReturnType<typeof openSockets>): SocketPair[] {
  const of = (role: string): number[] => opened.flatMap(([its, fd]) => (its === role ? [fd] : []))
  const v6 = of('inside6')
  return of('inside4').map((v4, index) => ({ v4, v6: v6[index] }))
}

const notEntered = (cause: unknown): PenError =>
  new PenError('BACKEND', {
    what: `cannot enter the network namespace of the sandbox (${cause instanceof Error ? cause.message : 'unknown error'})`,
    hint: 'pen doctor',
    cause,
  })
