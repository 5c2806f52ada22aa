/** Ports of one sandbox that programs of the host reach, as long as the requester is connected. */
import { statSync } from 'node:fs'
import type { AuditSink } from '../audit/event.ts'
import type { Running } from '../backend/backend.ts'
import { PenError } from '../base/error.ts'
import { dialInside } from '../gateway/forward/dial-inside.ts'
import { Forward, type ForwardContext, type PortPair } from '../gateway/forward/forward.ts'
import { listeningPorts } from '../gateway/netns/listening-ports.ts'
import { NamespaceSockets } from '../gateway/netns/namespace-sockets.ts'
import { CATCH_ALL_PORT, DNS_PORT } from '../gateway/netns/rules.ts'
import { SocketOwners } from '../gateway/netns/socket-owner.ts'
import { BufferBudget } from '../gateway/stream/buffer-budget.ts'
import { connectionLimits } from '../gateway/stream/connection-limits.ts'
import { PROXY_PORT } from '../protocol/guest-paths.ts'

export interface ForwardedPort {
  readonly guest: number
  /** The port on the host, and its addresses there. */
  readonly host: number
  readonly addresses: readonly string[]
}

export interface OpenForwards {
  readonly ports: readonly ForwardedPort[]
  /** Closes the ports and every connection. */
  close(): void
}

interface ForwardedSandbox {
  readonly running: Running
  readonly audit: AuditSink
  readonly workspace: string
}

/** Bytes that are buffered for peers that do not read. */
const MOST_HELD = 32 * 2 ** 20
const MAX_PORTS = 64
/** Above this, connections that ended are collected, but not at every new one. */
const NEARLY = 0.75
const ROOM_MS = 1000

/** The forwarded ports of one sandbox. Nothing is opened before the first request. */
export class Forwards {
  readonly #sandbox: ForwardedSandbox
  #context: ForwardContext | undefined
  /** Undefined when the sandbox's network is in a kernel of its own. */
  #sockets: NamespaceSockets | undefined
  readonly #open = new Set<OpenForwards>()
  readonly #begun = new Set<Forward>()
  #connections = 0
  #madeRoom = 0
  #isClosed: boolean = false

  constructor(sandbox: ForwardedSandbox) {
    this.#sandbox = sandbox
  }

  /** All ports that are forwarded now. */
  get ports(): readonly ForwardedPort[] {
    return [...this.#open].flatMap(({ ports }) => ports)
  }

  /** Ports on which programs inside listen, apart from pen's. None where the host's kernel does not know them. */
  get listening(): readonly number[] {
    const { running } = this.#sandbox
    const pid = running.initPid()
    if (pid === undefined || running.sharesHost === true || running.dial !== undefined) return []
    return listeningPorts(pid).filter(port => !OWN_PORTS.includes(port))
  }

  /** Opens all ports or none. The caller closes them; the end of the sandbox closes them too. */
  async open(pairs: readonly PortPair[]): Promise<OpenForwards> {
    if (this.#isClosed)
      throw new PenError('STATE', { what: 'the sandbox is ending', hint: 'start it again: pen start' })
    this.#context ??= this.#makeContext(this.#sandbox)
    const context = this.#context
    refuseOwn(pairs)
    if (this.#begun.size + pairs.length > MAX_PORTS)
      throw new PenError('LIMIT', {
        what: `${MAX_PORTS} ports of this sandbox are forwarded at most`,
        hint: 'end another pen forward first',
      })
    await this.#sockets?.prepare()
    if (this.#isClosed) throw ENDED()
    const begun: Begun[] = []
    const close = (): void => {
      if (!this.#open.delete(opened)) return
      for (const one of begun) this.#end(one)
    }
    const opened: OpenForwards = {
      get ports() {
        return begun.map(({ forward: { guest, host, addresses } }) => ({ guest, host, addresses }))
      },
      close,
    }
    this.#open.add(opened)
    try {
      for (const pair of pairs) begun.push(this.#begin(pair, context))
      return opened
    } catch (error) {
      close()
      throw error
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const one of this.#open) one.close()
    this.#sockets?.close()
    this.#context?.owners.close()
  }

  #makeContext({ running, workspace }: ForwardedSandbox): ForwardContext {
    const pid = running.initPid()
    if (pid === undefined) throw ENDED()
    if (running.sharesHost === true)
      throw new PenError('BACKEND', {
        what: 'this sandbox shares the network of this machine: its servers already listen here',
        hint: 'connect to 127.0.0.1 at that port',
      })
    const most = connectionLimits().forwards
    return {
      dial: running.dial ?? this.#dialNamespace(new NamespaceSockets(running.network ?? { pid })),
      owners: new SocketOwners(),
      held: new BufferBudget(MOST_HELD),
      users: usersOf(workspace),
      enter: () => {
        if (this.#connections >= most * NEARLY) this.#makeRoom()
        return this.#connections < most && ++this.#connections > 0
      },
      leave: () => {
        this.#connections--
      },
    }
  }

  #dialNamespace(sockets: NamespaceSockets): ForwardContext['dial'] {
    this.#sockets = sockets
    return async port => await dialInside(await sockets.take(), port)
  }

  #makeRoom(): void {
    const now = performance.now()
    if (now - this.#madeRoom < ROOM_MS) return
    this.#madeRoom = now
    for (const forward of this.#begun) forward.sweep()
  }

  #begin(pair: PortPair, context: ForwardContext): Begun {
    const forward = new Forward(pair, context)
    try {
      // No connection was accepted yet.
      this.#sandbox.audit.record({ kind: 'forward-start', guest: forward.guest, host: forward.host })
    } catch (error) {
      forward.close()
      throw error
    }
    this.#begun.add(forward)
    return { forward, since: Date.now() }
  }

  #end({ forward, since }: Begun): void {
    forward.close()
    this.#begun.delete(forward)
    const { guest, host, connections, refused } = forward
    try {
      this.#sandbox.audit.record({
        kind: 'forward-end',
        guest,
        host,
        connections,
        refused,
        ms: Date.now() - since,
      })
    } catch {
      // A connection that cannot be recorded is closed.
      this.#sandbox.running.kill()
    }
  }
}

const ENDED = (): PenError =>
  new PenError('STATE', { what: 'the sandbox has ended', hint: 'start it again: pen start' })

interface Begun {
  readonly forward: Forward
  readonly since: number
}

/** Who may connect: this user, and root. When root runs pen, also the owner of the project, as whom the sandbox runs. */
function usersOf(workspace: string): ReadonlySet<number> {
  const own = process.geteuid?.() ?? 0
  return new Set(own === 0 ? [0, statSync(workspace).uid] : [0, own])
}

const OWN_PORTS: readonly number[] = [CATCH_ALL_PORT, DNS_PORT, PROXY_PORT]

function refuseOwn(pairs: readonly PortPair[]): void {
  const own = pairs.find(({ guest }) => OWN_PORTS.includes(guest))
  if (own === undefined) return
  throw new PenError('USAGE', {
    what: `port ${own.guest} in a sandbox is used by pen: no server of the sandbox listens there`,
    hint: 'let the server listen on a port above 1023',
  })
}
