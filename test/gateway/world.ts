/**
 * A gateway between a sandbox and an outside that are both on loopback. The address guard sees TEST-NET
 * addresses, and the `connect` seam redirects them to recorders. A dial without a recorder counts as a stray,
 * and is refused.
 */
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { AuditEventInput } from '../../src/audit/event.ts'
import { parseMillis } from '../../src/base/quantity.ts'
import type { Resolution, Resolver } from '../../src/gateway/dial/resolve.ts'
import { connectTcp } from '../../src/gateway/dial/tcp-connect.ts'
import { Gateway } from '../../src/gateway/gateway.ts'
import type { GatewayLimits } from '../../src/gateway/limits.ts'
import type { Vault } from '../../src/gateway/secrets/vault.ts'
import type { TcpSocket } from '../../src/gateway/stream/tcp-socket.ts'
import type { Authority } from '../../src/gateway/tls/authority.ts'
import { type Address, parseAddress } from '../../src/policy/network/address.ts'
import { parseAllowRule, parseDenyRule } from '../../src/policy/network/endpoint.ts'
import { type Host, parseHost } from '../../src/policy/network/host.ts'
import { compileNetwork } from '../../src/policy/network/network.ts'
import { type Port, parsePort } from '../../src/policy/network/port.ts'
import type { NetworkPolicy } from '../../src/policy/policy.ts'
import { secretEntry } from '../../src/policy/secret-entry.ts'
import type { Parsed } from '../../src/policy/source.ts'
import { Client } from './client.ts'
import { type Listener, listenHere } from './listen.ts'
import { Recorder } from './recorder.ts'

const must = <T>(parsed: Parsed<T>): T => {
  if (!parsed.ok) throw new Error(parsed.why)
  return parsed.value
}
export const address = (text: string): Address => must(parseAddress(text))
export const host = (text: string): Host => must(parseHost(text))
export const port = (n: number): Port => must(parsePort(String(n)))

export interface WorldOptions {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly limits?: Partial<GatewayLimits>
  readonly resolver?: Resolver
  readonly idleMs?: number
  /** For opened TLS: the authority inside, the one that servers have, and the secrets. */
  readonly authority?: Authority
  readonly outside?: Authority
  readonly vault?: Vault
  readonly secrets?: readonly object[]
  /** Asked for a grant for one connection. */
  readonly useUp?: (grant: string) => boolean
}

export const UP = '198.51.100.10'
export const EVIL = '198.51.100.66'

export function policyOf(options: WorldOptions, extra: Partial<NetworkPolicy> = {}): NetworkPolicy {
  const source = { layer: 'test', place: undefined }
  const none = () => false
  const allow = (options.allow ?? ['allowed.test:443', 'allowed.test:80']).map(text => ({
    rule: must(parseAllowRule(text, none)),
    source,
  }))
  const deny = (options.deny ?? []).map(text => ({ rule: must(parseDenyRule(text, none)), source }))
  const secrets = (options.secrets ?? []).map(said => ({ rule: secretOf(said), source }))
  return {
    mode: 'gateway',
    offline: false,
    ask: 'never',
    hold: parseMillis('60s'),
    idle: parseMillis(`${options.idleMs ?? 3_600_000}ms`),
    upstreamProxy: null,
    groups: [],
    allow,
    deny,
    once: { allow: [], deny: [] },
    ceilings: [],
    secrets,
    index: compileNetwork({ mode: 'gateway', offline: false, allow, deny, secrets }),
    ...extra,
  }
}

/** What a vault is bound to. */
export const indexOf = (secrets: readonly object[]) => policyOf({ secrets }).index

/** An entry of the config. */
const secretOf = (said: object) =>
  must(
    secretEntry({ from: { env: 'X' }, ...said } as Parameters<typeof secretEntry>[0], {
      trust: 'user',
      world: { workspace: '/w', home: '/h' } as Parameters<typeof secretEntry>[1]['world'],
      isPublicSuffix: () => false,
    }),
  )

export class World {
  policy: NetworkPolicy
  readonly audit: AuditEventInput[] = []
  readonly strays: string[] = []
  readonly lookups: string[] = []
  readonly zone: Record<string, readonly string[]> = { 'allowed.test': [UP], 'evil.test': [EVIL] }
  readonly recorders = new Map<string, Recorder>()
  readonly gateway: Gateway
  audits: boolean = true
  readonly #trusted: string | undefined
  readonly #names = new Map<Address, Host>()
  readonly #doors: Listener[] = []
  readonly #clients: Client[] = []

  private constructor(options: WorldOptions) {
    this.policy = policyOf(options)
    this.#trusted = options.authority?.certificate
    this.gateway = new Gateway({
      network: () => this.policy,
      names: { nameOf: to => this.#names.get(to) },
      audit: { record: event => this.#record(event) },
      // A busy machine may deliver a client's first bytes late. That is not a client that waits for the server.
      limits: { graceMs: 100, lingerMs: 300, connectMs: 1000, ...options.limits },
      resolver: options.resolver ?? { resolve: name => Promise.resolve(this.#resolve(name)) },
      connect: (to, at, done) => this.#connect(to, at, done),
      ...(options.useUp !== undefined && { useUp: options.useUp }),
      authority: options.authority,
      vault: options.vault,
      ...(options.outside !== undefined && { trust: options.outside.certificate }),
    })
  }

  /** With one recorder for the allowed name and one for the other. */
  static async start(options: WorldOptions = {}): Promise<World> {
    const world = new World(options)
    await world.recorder(UP, options.outside?.leafFor(host('allowed.test')))
    await world.recorder(EVIL)
    return world
  }

  get up(): Recorder {
    return this.#recorderOf(UP)
  }

  get evil(): Recorder {
    return this.#recorderOf(EVIL)
  }

  async recorder(at: string, pair?: { readonly key: string; readonly cert: string }): Promise<Recorder> {
    const recorder = await Recorder.start(pair)
    this.recorders.set(at, recorder)
    return recorder
  }

  /** What a program does that looks the name up and connects. */
  byName(name: string, at: number): Promise<Client> {
    const number = this.#names.size + 1
    const synthetic = address(`198.18.${number >> 8}.${number & 0xff}`)
    this.#names.set(synthetic, host(name))
    return this.#open(synthetic, at, 'transparent')
  }

  /** The same, with TLS. Undefined when the handshake fails. */
  async byTls(name: string, at: number, more: ConnectionOptions = {}): Promise<Client | undefined> {
    const { socket } = await this.byName(name, at)
    socket.removeAllListeners('data')
    const secure = connectTls({ socket, servername: name, ca: this.#trusted ?? [], ...more })
    const isDone = await new Promise<boolean>(resolve => {
      secure.once('secureConnect', () => resolve(true))
      secure.once('error', () => resolve(false))
      secure.once('close', () => resolve(false))
    })
    if (!isDone) return undefined
    const client = new Client(0, secure)
    this.#clients.push(client)
    return client
  }

  byAddress(to: string, at: number): Promise<Client> {
    return this.#open(address(to), at, 'transparent')
  }

  byProxy(): Promise<Client> {
    return this.#open(address('198.19.255.254'), 3128, 'proxy')
  }

  kinds(): string[] {
    return this.audit.map(event => ('reason' in event ? `${event.kind} ${event.reason}` : event.kind))
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.socket.destroy()
    await this.gateway.close()
    for (const door of this.#doors) door.stop()
    for (const recorder of this.recorders.values()) recorder.close()
  }

  #open(to: Address, at: number, via: 'transparent' | 'proxy'): Promise<Client> {
    return new Promise(resolve => {
      const door = listenHere(socket =>
        this.gateway.accept({ socket, to: { address: to, port: port(at) }, via }),
      )
      this.#doors.push(door)
      const client = new Client(door.port)
      this.#clients.push(client)
      client.socket.once('connect', () => resolve(client))
    })
  }

  #record(event: AuditEventInput): void {
    if (!this.audits) throw new Error('ENOSPC')
    this.audit.push(event)
  }

  #resolve(name: Host): Resolution {
    this.lookups.push(name)
    const found = this.zone[name]
    if (found === undefined) return { ok: false, reason: 'name-not-found', why: `${name} has no address` }
    return { ok: true, addresses: found.map(address) }
  }

  #connect(to: Address, at: Port, done: (error: unknown) => void): TcpSocket {
    const recorder = this.recorders.get(`${to}:${at}`) ?? this.recorders.get(to)
    if (recorder === undefined) this.strays.push(`${to}:${at}`)
    return connectTcp(address('127.0.0.1'), port(recorder?.port ?? 1), done)
  }

  #recorderOf(at: string): Recorder {
    const recorder = this.recorders.get(at)
    if (recorder === undefined) throw new Error(`no recorder at ${at}`)
    return recorder
  }
}
