/**
 * Sockets that belong to the network namespace of a sandbox which runs, made ahead: what they dial is the sandbox's own
 * loopback. Nothing of the sandbox takes part in making them, and nothing in it gets one.
 */
import { PenError } from '../../base/error.ts'
import { close, openPath } from '../../base/kernel/descriptor.ts'
import { hasCapabilities } from '../../base/kernel/host-root.ts'
import { succeeded, tryCall } from '../../base/kernel/system-call.ts'
import { ownProgram } from '../../base/own-program.ts'
import { DOOR_MODE, SOCKETS } from './door-mode.ts'
import { type DoorLocation, entryByDescriptor, entryFor, inNamespace } from './namespace.ts'
import { openInChild, starterOf } from './open.ts'
import { openSockets } from './sockets.ts'

export interface SocketPair {
  readonly v4: number
  /** Undefined where the kernel has no IPv6. */
  readonly v6: number | undefined
}

/** Any process of the sandbox, or its network in root's hands. */
export type SandboxNetwork = { readonly pid: number } | Extract<DoorLocation, { readonly kind: 'by-helper' }>

/** In one go: a process has to be started for them, unless pen is root. */
const BATCH = 32
/** Then the next ones are made, while these are used. */
const FEW = 16

const CAP_SYS_ADMIN = 21
/** `ioctl_ns(2)`: the user namespace that a namespace belongs to. */
const NS_GET_USERNS = 0xb701

export class NamespaceSockets {
  /** Held open: the number of a process may be another's one day. */
  readonly #network: number
  readonly #owner: number | undefined
  readonly #byHelper: Extract<DoorLocation, { readonly kind: 'by-helper' }> | undefined
  readonly #ready: SocketPair[] = []
  #filling: Promise<void> | undefined
  #isClosed: boolean = false

  constructor(whose: SandboxNetwork) {
    this.#byHelper = 'pid' in whose ? undefined : whose
    const path = 'pid' in whose ? `/proc/${whose.pid}/ns/net` : `/proc/self/fd/${whose.network}`
    try {
      this.#network = openPath(path)
      const isEntered = this.#byHelper !== undefined || hasCapabilities(CAP_SYS_ADMIN)
      this.#owner = isEntered ? undefined : ownerOf(this.#network)
    } catch (cause) {
      throw notEntered(cause)
    }
  }

  /** What would fail later fails now. */
  async prepare(): Promise<void> {
    if (this.#isClosed) throw ENDED()
    if (this.#ready.length > 0) return
    this.#filling ??= this.#fill()
    await this.#filling
  }

  /** The caller's to close. */
  async take(): Promise<SocketPair> {
    for (;;) {
      if (this.#isClosed) throw ENDED()
      const pair = this.#ready.pop()
      if (this.#ready.length < FEW) this.#filling ??= this.#fill()
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
    // Whoever waits for it hears of a failure; others have a socket.
    filling.catch(() => undefined)
    return filling
  }

  async #make(): Promise<SocketPair[]> {
    try {
      const mode = [...ownProgram(), DOOR_MODE, SOCKETS, String(BATCH)]
      if (this.#byHelper !== undefined) {
        const { words } = entryFor(this.#byHelper)
        return asPairs(await openInChild([...words, ...mode], starterOf(this.#byHelper)))
      }
      if (this.#owner === undefined) return inPairs(inNamespace(this.#network, () => openSockets(BATCH)))
      // It needs no power there, only to be there: so it keeps the identity that it has outside.
      const { words } = entryByDescriptor(this.#network, this.#owner, 'own-id')
      return asPairs(await openInChild([...words, ...mode]))
    } catch (cause) {
      throw notEntered(cause)
    }
  }
}

function asPairs(opened: Awaited<ReturnType<typeof openInChild>>): SocketPair[] {
  if (opened === undefined) throw new PenError('INTERNAL', { what: 'no rules were asked for' })
  return inPairs(opened)
}
const ENDED = (): PenError => new PenError('STATE', { what: 'the sandbox has ended' })

export function closePair({ v4, v6 }: SocketPair): void {
  close(v4)
  if (v6 !== undefined) close(v6)
}

const ownerOf = (namespace: number): number =>
  succeeded('ask for the owner', tryCall('ioctl', namespace, NS_GET_USERNS, null))

function inPairs(opened: ReturnType<typeof openSockets>): SocketPair[] {
  const of = (role: string): number[] => opened.flatMap(([its, fd]) => (its === role ? [fd] : []))
  const sixes = of('inside6')
  return of('inside4').map((v4, index) => ({ v4, v6: sixes[index] }))
}

const notEntered = (cause: unknown): PenError =>
  new PenError('BACKEND', {
    what: `the network of the sandbox cannot be entered from here (${cause instanceof Error ? cause.message : 'unknown error'})`,
    hint: '`pen doctor` tries the engine',
    cause,
  })
