/** The sandbox's way out: a door in its namespace, a DNS stub and the gateway behind it. Without all three nothing starts. */
import type { AuditSink } from '../audit/event.ts'
import { DnsStub } from '../gateway/dns.ts'
import type { Door } from '../gateway/door.ts'
import { Gateway } from '../gateway/gateway.ts'
import { NameBook } from '../gateway/names.ts'
import type { Host } from '../policy/host.ts'
import type { NetworkIndex } from '../policy/network.ts'
import type { NetworkPolicy } from '../policy/policy.ts'

export interface WayOut {
  readonly door: Door
  /** The policy from now on, as one change. Connections that it does not allow end; how many, is told. */
  change(network: NetworkPolicy): number
  /** Begins to answer. Until then whatever the sandbox dials waits. */
  serve(): Promise<void>
  /** Every refused datagram that was not told before goes into the audit. */
  recordRefused(): Promise<void>
  close(): Promise<void>
}

export function connectGateway(door: Door, network: NetworkPolicy, audit: AuditSink): WayOut {
  let current = network
  const names = new NameBook({ isAwaited: name => hasRule(current.index, name) })
  const dns = new DnsStub({ names, audit })
  const gateway = new Gateway({ network: () => current, names, audit })
  const told = new Set<string>()

  return {
    door,
    change: changed => {
      current = changed
      return gateway.policyChanged()
    },
    serve: async () =>
      await door.serve({
        dialled: (socket, to) => gateway.accept({ socket, to, via: 'transparent' }),
        proxied: socket =>
          gateway.accept({
            socket,
            to: { address: door.proxy.address as never, port: door.proxy.port as never },
            via: 'proxy',
          }),
        queryStream: socket => dns.serveTcp(socket),
        queries: socket => dns.serveUdp(socket),
        turnedAway: why => gateway.turnedAway(why),
      }),
    recordRefused: async () => {
      for (const { address, port } of await door.refusedDatagrams()) {
        const flow = `${address} ${port}`
        if (told.has(flow)) continue
        told.add(flow)
        const name = names.nameOf(address)
        audit.record({
          kind: 'flow-refused',
          protocol: 'udp',
          ...(name === undefined ? { address } : { name }),
          port,
          reason: 'udp',
        })
      }
    },
    close: async () => {
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
