/** The sandbox's way out: a door in its namespace, a DNS stub and the gateway behind it. Without all three nothing starts. */
import type { AuditSink } from '../audit/event.ts'
import { isIPv6 } from '../policy/network/address.ts'
import type { Host } from '../policy/network/host.ts'
import type { NetworkIndex } from '../policy/network/network.ts'
import type { NetworkPolicy } from '../policy/policy.ts'
import type { AskOptions, UserAnswer } from './ask-user.ts'
import { NameTable } from './dns/names.ts'
import { DnsStub } from './dns/stub.ts'
import { Gateway, type GatewayStats } from './gateway.ts'
import type { Door } from './netns/door.ts'
import { MOST_REFUSED } from './netns/rules.ts'
import type { Endpoint } from './route.ts'

export interface Egress {
  readonly door: Door
  /** The policy from now on, as one change. Connections that it does not allow end; how many, is told. */
  change(network: NetworkPolicy): number
  /** Begins to answer. Until then whatever the sandbox dials waits. */
  serve(): Promise<void>
  /** Whether connections are taken and judged now. */
  isServing(): boolean
  stats(): GatewayStats
  /** Asks the person for a connection that nobody makes yet. */
  ask(endpoint: Endpoint, options: AskOptions): Promise<UserAnswer>
  /** Every refused datagram that was not told before goes into the audit. */
  recordRefused(): Promise<void>
  /** The programs have ended by themselves: what they sent last gets its time to leave. */
  finish(): Promise<void>
  close(): Promise<void>
}

/** A datagram is refused by the kernel, which does not tell by itself. */
const REFUSED_MS = 1000
const LAST_WORDS_MS = 2000

export function connectGateway(
  door: Door,
  network: NetworkPolicy,
  audit: AuditSink,
  /** Uses up a grant for one connection. Without it there are none. */
  useUp: (grant: string) => boolean = () => false,
): Egress {
  let current = network
  const names = new NameTable({ isAwaited: name => hasRule(current.index, name) })
  const dns = new DnsStub({ names, audit })
  const gateway = new Gateway({ network: () => current, names, audit, useUp })
  const told = new Set<string>()
  let asking: ReturnType<typeof setInterval> | undefined
  let isFullTold: boolean = false
  let isServing: boolean = false

  const recordRefused = async (): Promise<void> => {
    const refused = await door.refusedDatagrams()
    for (const { address, port } of refused) {
      const flow = `${address} ${port}`
      if (told.has(flow)) continue
      const name = names.nameOf(address)
      const whom = name === undefined ? { address } : { name }
      audit.record({ kind: 'flow-refused', protocol: 'udp', ...whom, port, reason: 'udp' })
      told.add(flow)
    }
    const six = refused.filter(({ address }) => isIPv6(address)).length
    if (isFullTold || Math.max(six, refused.length - six) < MOST_REFUSED) return
    const reason = 'destinations of datagrams are refused from now on without a record'
    audit.record({ kind: 'limit-hit', limit: 'refused-datagrams', value: String(refused.length), reason })
    isFullTold = true
  }

  return {
    door,
    change: changed => {
      current = changed
      return gateway.policyChanged()
    },
    serve: async () => {
      // What cannot be told now is tried again, and at the end for the last time.
      asking = setInterval(() => void recordRefused().catch(() => undefined), REFUSED_MS)
      asking.unref()
      await door.serve({
        dialled: (socket, to) => gateway.accept({ socket, to, via: 'transparent' }),
        proxied: socket =>
          gateway.accept({
            socket,
            to: { address: door.proxy.address as never, port: door.proxy.port as never },
            via: 'proxy',
            secret: door.proxy.secret,
          }),
        queryStream: socket => dns.serveTcp(socket),
        queries: socket => dns.serveUdp(socket),
        rejected: why => gateway.rejected(why),
      })
      isServing = true
    },
    isServing: () => isServing,
    stats: () => gateway.stats(),
    ask: (endpoint, options) => gateway.ask(endpoint, options),
    recordRefused,
    finish: () => gateway.finish(LAST_WORDS_MS),
    close: async () => {
      clearInterval(asking)
      isServing = false
      dns.close()
      await gateway.close()
      door.close()
    },
  }
}

/** Whether any rule may ever allow the name: such a name still gets an address when the sandbox has used up the rest. */
function hasRule(index: NetworkIndex, name: Host): boolean {
  if (index.names.has(name)) return true
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1))
    if (index.suffixes.has(name.slice(dot + 1))) return true
  return false
}
