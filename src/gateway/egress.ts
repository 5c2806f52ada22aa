/** The way out of a sandbox: a door in its namespace, and a DNS stub and the gateway behind it. */
import type { AuditSink } from '../audit/event.ts'
import { type Address, isIPv6 } from '../policy/network/address.ts'
import type { Host } from '../policy/network/host.ts'
import type { NetworkIndex } from '../policy/network/network.ts'
import type { Port } from '../policy/network/port.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import type { AskOptions, UserAnswer } from './ask-user.ts'
import { NameTable } from './dns/names.ts'
import { DnsStub } from './dns/stub.ts'
import { Gateway } from './gateway.ts'
import type { GatewayOptions, GatewayStats } from './gateway-context.ts'
import type { Door } from './netns/door.ts'
import { MAX_REFUSED } from './netns/rules.ts'
import type { Endpoint } from './route.ts'

export type Egress = ReturnType<typeof connectGateway>

/** The kernel refuses datagrams without an event, so the gateway polls for them. */
const REFUSED_MS = 1000
const FLUSH_MS = 2000

export function connectGateway(
  door: Door,
  network: NetworkPolicy,
  audit: AuditSink,
  /** Consumes a grant for one connection. Without this function there are no such grants. */
  useUp: (grant: string) => boolean = () => false,
  /** For hosts that the gateway opens. */
  opening: Pick<GatewayOptions, 'authority' | 'vault'> = {},
) {
  let current = network
  const names = new NameTable({ isReserved: name => hasRule(current.index, name) })
  const dns = new DnsStub({ names, audit })
  const gateway = new Gateway({ network: () => current, names, audit, useUp, ...opening })
  const recorded = new Set<string>()
  let polling: ReturnType<typeof setInterval> | undefined
  let isOverflowRecorded: boolean = false
  let isServing: boolean = false

  const recordRefused = async (): Promise<void> => {
    const refused = await door.refusedDatagrams()
    for (const { address, port } of refused) {
      const flow = `${address} ${port}`
      if (recorded.has(flow)) continue
      const name = names.nameOf(address)
      const target = name === undefined ? { address } : { name }
      audit.record({ kind: 'flow-refused', protocol: 'udp', ...target, port, reason: 'udp' })
      recorded.add(flow)
    }
    const ipv6 = refused.filter(({ address }) => isIPv6(address)).length
    if (isOverflowRecorded || Math.max(ipv6, refused.length - ipv6) < MAX_REFUSED) return
    const reason = 'from now on, refused datagrams to new destinations are not recorded'
    audit.record({ kind: 'limit-hit', limit: 'refused-datagrams', value: String(refused.length), reason })
    isOverflowRecorded = true
  }

  return {
    door,
    /** Applies a new policy atomically. Ends the connections that it does not allow and returns their number. */
    change: (changed: NetworkPolicy): number => {
      current = changed
      return gateway.policyChanged()
    },
    /** Starts to accept. Until then connections of the sandbox wait in the kernel. */
    serve: async (): Promise<void> => {
      // A failed attempt is retried at the next tick, and a last time when the run ends.
      polling = setInterval(() => void recordRefused().catch(() => undefined), REFUSED_MS)
      polling.unref()
      const { address, port, secret } = door.proxy
      const proxy = { to: { address: address as Address, port: port as Port }, via: 'proxy', secret } as const
      await door.serve({
        dialled: (socket, to) => gateway.accept({ socket, to, via: 'transparent' }),
        proxied: socket => gateway.accept({ socket, ...proxy }),
        queryStream: socket => dns.serveTcp(socket),
        queries: socket => dns.serveUdp(socket),
        rejected: why => gateway.rejected(why),
      })
      isServing = true
    },
    /** Whether connections are accepted now. */
    isServing: (): boolean => isServing,
    stats: (): GatewayStats => gateway.stats(),
    /** Asks the user about a host that no connection waits for. */
    ask: (endpoint: Endpoint, options: AskOptions): Promise<UserAnswer> => gateway.ask(endpoint, options),
    /** Writes every refused datagram that is not recorded yet to the audit. */
    recordRefused,
    /** Every program has ended. Waits a moment until the last bytes are sent. */
    finish: (): Promise<void> => gateway.finish(FLUSH_MS),
    close: async (): Promise<void> => {
      clearInterval(polling)
      isServing = false
      door.close()
      dns.close()
      await gateway.close()
    },
  }
}

/** Whether a rule may allow the name. Such a name gets an address even when the sandbox has used up the pool. */
function hasRule(index: NetworkIndex, name: Host): boolean {
  if (index.names.has(name)) return true
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1))
    if (index.suffixes.has(name.slice(dot + 1))) return true
  return false
}
