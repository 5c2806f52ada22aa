/**
 * A door without a network namespace: an HTTP proxy on the host's loopback, behind a secret that only the sandbox knows.
 * Programs that ignore the proxy variables bypass it; the user accepted that gap. The proxy dies with this process.
 */
import { randomBytes } from 'node:crypto'
import { close } from '../base/kernel/descriptor.ts'
import { AF } from '../base/kernel/socket.ts'
import { boundToLoopback, listenTcp, portOf } from './dial/tcp-connect.ts'
import type { Door } from './netns/door.ts'
import { PROXY_USER } from './proxy-secret.ts'
import { atMost } from './stream/connection-limits.ts'

/** Each connection may cost two descriptors. Connections without the secret count too. */
const MOST_CONNECTIONS = 2048
export async function openProxyDoor(): Promise<Door> {
  const fd = boundToLoopback(AF.inet, 0)
  const proxy = {
    address: '127.0.0.1',
    port: portOf(fd),
    secret: randomBytes(24).toString('hex'),
  } as const
  let stop = (): void => close(fd)
  return {
    recordsRefusals: true,
    ipv6: false,
    proxy,
    variables: proxyVariables(proxy),
    wrap: [],
    within: start => start(),
    enter: argv => [...argv],
    serve: async ({ proxied, rejected }) => {
      const accept = atMost(MOST_CONNECTIONS, () => rejected?.('connections'))
      stop = listenTcp(fd, accept(proxied)).stop
    },
    refusedDatagrams: async () => [],
    settle: async () => undefined,
    close: () => {
      stop()
      stop = () => undefined
    },
  }
}

/** All proxy variables that programs read. There is no NO_PROXY: services of the host need a rule too. */
function proxyVariables({ address, port, secret }: Door['proxy']): NonNullable<Door['variables']> {
  const value = `http://${PROXY_USER}:${secret}@${address}:${port}`
  return [
    'PEN_PROXY',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'http_proxy',
    'https_proxy',
    'all_proxy',
  ].map(name => ({ name, value, secret: true as const }))
}
