/**
 * A connection for a tool of a soft sandbox. It is judged by name or address and port, recorded, and then dialled as
 * the gateway does, with every DNS answer checked. Its contents are not judged.
 */
import type { AuditSink } from '../../../audit/event.ts'
import { PenError } from '../../../base/error.ts'
import { Dialer } from '../../../gateway/dial/dial.ts'
import { Cancellation } from '../../../gateway/dial/dial-result.ts'
import { HostResolver, type Resolver } from '../../../gateway/dial/resolve.ts'
import { connectTcp } from '../../../gateway/dial/tcp-connect.ts'
import { parseAuthority } from '../../../gateway/http/target.ts'
import { DEFAULT_LIMITS } from '../../../gateway/limits.ts'
import { refusalOf } from '../../../gateway/refusal.ts'
import { auditTarget, type Endpoint } from '../../../gateway/route.ts'
import type { ByteStream } from '../../../gateway/stream/byte-stream.ts'
import { decideConnection } from '../../../policy/network/decide-connection.ts'
import type { Denied } from '../../../policy/network/denial.ts'
import { printRule } from '../../../policy/network/net-rule.ts'
import type { NetworkPolicy } from '../../../policy/policy.ts'
import { showSource } from '../../../policy/source.ts'
import { Refused } from './refused.ts'

export interface Connection {
  /** Undefined at the end. */
  read(): Promise<Uint8Array | undefined>
  /** False when the other end is closed. */
  write(bytes: Uint8Array): Promise<boolean>
  close(): void
}

export interface ConnectorOptions {
  readonly network: () => NetworkPolicy
  readonly audit: AuditSink
  readonly resolver?: Resolver | undefined
}

/** The record of one connection, from its verdict to its end. */
interface Recorded extends Endpoint {
  readonly number: number
  readonly since: number
}

export class Connector {
  readonly #options: ConnectorOptions
  readonly #dialer: Dialer
  #last = 0

  constructor(options: ConnectorOptions) {
    const limits = DEFAULT_LIMITS
    const resolver = options.resolver ?? new HostResolver({ timeoutMs: limits.lookupMs })
    this.#options = options
    this.#dialer = new Dialer({ network: options.network, resolver, limits, connect: connectTcp })
  }

  async connect(host: string, port: number): Promise<Connection> {
    const { network, audit } = this.#options
    const endpoint = endpointOf(host, port)
    const one: Recorded = { ...endpoint, number: ++this.#last, since: performance.now() }
    const verdict = decideConnection(network().index, one.to, one.port)
    if (!verdict.ok) throw this.#refuse(one, verdict)
    const target = { connection: one.number, ...auditTarget(endpoint) }
    const from = showSource(verdict.source)
    audit.record({ kind: 'connection-allowed', ...target, rule: printRule(verdict.rule), from })
    const dialled = await this.#dialer.dial(verdict.dial, new Cancellation())
    if (dialled.kind === 'denied') throw this.#refuse(one, dialled.denied)
    if (dialled.kind === 'connected') return this.#join(one, dialled.stream)
    const { reason, why } = dialled
    audit.record({ kind: 'connection-failed', ...target, reason, why })
    throw new PenError('CONNECT', {
      what: `it was allowed, but it failed: ${why}`,
      at: where(one),
      hint: 'the server or the network is at fault, or the name is wrong',
    })
  }

  #refuse({ number, ...endpoint }: Recorded, denied: Denied): Refused {
    const { reason, why, rule, from, fix } = refusalOf(denied)
    const target = { connection: number, ...auditTarget(endpoint) }
    this.#options.audit.record({ kind: 'connection-denied', ...target, reason, why, rule, from, fix })
    return new Refused({ what: 'connect is refused', why, at: where(endpoint), reason, fix })
  }

  #join({ number, since, ...endpoint }: Recorded, stream: ByteStream): Connection {
    let by = 'upstream'
    stream.onClose = () => {
      const bytes = { bytesUp: stream.sent, bytesDown: stream.received }
      const target = { connection: number, ...auditTarget(endpoint) }
      const ms = Math.round(performance.now() - since)
      this.#options.audit.record({ kind: 'connection-closed', ...target, ...bytes, ms, reason: by })
    }
    return {
      read: async () => {
        while (stream.held.length === 0) if (!(await stream.more())) return undefined
        return new Uint8Array(stream.consume(stream.held.length))
      },
      write: bytes => stream.write(bytes),
      close: () => {
        by = 'client'
        stream.socket.destroy()
      },
    }
  }
}

const where = ({ to, port }: Endpoint): string => `${'name' in to ? to.name : to.address}:${port}`

function endpointOf(host: string, port: number): Endpoint {
  const named = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  const target = parseAuthority(`${named}:${port}`)
  if (target.ok && target.value.port !== undefined) return { to: target.value.to, port: target.value.port }
  throw new PenError('HOST_SYNTAX', {
    what: target.ok ? 'there is no port' : target.why,
    at: host,
    hint: 'a plain name or address, and a port from 1 to 65535',
  })
}
