/**
 * The gateway's door of one sandbox. Where pen makes the network namespace, the door opens early, while the plan is still being built.
 * Where the backend makes it, the door opens in that namespace during the start.
 */
import type { Backend, MadeNamespace } from '../backend/backend.ts'
import { PenError } from '../base/error.ts'
import type { UndoStack } from '../base/undo.ts'
import type { Door } from '../gateway/netns/door.ts'
import { bringUpLoopbackOf, type DoorLocation } from '../gateway/netns/namespace.ts'
import type { Policy } from '../policy/policy.ts'

export class SandboxDoor {
  #opening: Promise<Door> | undefined
  #door: Door | undefined

  constructor(undo: UndoStack) {
    undo.push('the door', () => this.#close())
  }

  /** Undefined for a sandbox without network. */
  get door(): Door | undefined {
    return this.#door
  }

  /** Begins to open the door, and returns at once. `opened()` reports a failure. */
  openEarly(backend: Backend, policy: Policy): void {
    const { network } = policy
    if (backend.network === 'made-by-backend') return
    // On loopback the proxy also serves a policy without network: it refuses everything, and says why.
    if (backend.network === 'loopback')
      this.#opening = import('../gateway/proxy-door.ts').then(({ openProxyDoor }) => openProxyDoor())
    else if (network.mode === 'gateway' && !network.offline) this.#opening = openDoor(policy, { kind: 'new' })
    this.#opening?.catch(() => undefined)
  }

  async opened(): Promise<Door | undefined> {
    this.#door = await this.#opening
    return this.#door
  }

  /** Opens the door in a namespace that the backend made. A retried start has another namespace, so the old door is closed. */
  async openIn(namespace: MadeNamespace, policy: Policy, hasGateway: boolean): Promise<() => Promise<void>> {
    this.#door?.close()
    this.#door = undefined
    if (hasGateway) this.#door = await openDoor(policy, namespace)
    else if (namespace.kind === 'of-process' && !namespace.userNamespace) bringUpLoopbackOf(namespace.pid)
    return async () => await this.#door?.settle()
  }

  #close(): void {
    if (this.#door !== undefined) this.#door.close()
    else
      void this.#opening?.then(
        door => door.close(),
        () => undefined,
      )
  }
}

/** The door's modules are loaded here only: a sandbox without network does not need them. */
async function openDoor({ network, acceptGaps }: Policy, location: DoorLocation): Promise<Door> {
  const ports = network.allow.map(({ rule }) => rule.port)
  const { openDoor: open } = await import('../gateway/netns/door.ts')
  return requireRecords(await open({ ports, location }), acceptGaps)
}

/** A kernel that refuses the packet filter's rules shows that only when the door is open. */
function requireRecords(door: Door, accepted: readonly string[]): Door {
  if (door.recordsRefusals || accepted.includes(UNRECORDED)) return door
  door.close()
  throw new PenError('GAP', {
    what: `this machine cannot keep all of the policy: ${UNRECORDED} (the kernel did not take the rules of the packet filter, so ports that no rule names are refused without a record)`,
    hint: `accept by name with --accept-gap ${UNRECORDED}, or use a kernel with nf_tables`,
  })
}

const UNRECORDED = 'refusals-unrecorded'
