/**
 * A door without a network namespace: an HTTP proxy on the host's loopback, behind a secret that only the sandbox knows.
 * Programs that ignore the proxy variables bypass it; the user accepted that gap. The proxy dies with this process.
 */
import { randomBytes } from 'node:crypto'
import { listenLoopback } from './dial/tcp-connect.ts'
import type { Door, DoorHandlers } from './netns/door.ts'
import { PROXY_USER } from './proxy-secret.ts'
import type { TcpSocket } from './stream/tcp-socket.ts'

/** Each connection may cost two descriptors. Connections without the secret count too. */
const MOST_CONNECTIONS = 2048
/** No command runs before the gateway serves, so few connections can wait. */
const MOST_WAITING = 16

export async function openProxyDoor(): Promise<Door> {
  const secret = randomBytes(24).toString('hex')
  const waiting: TcpSocket[] = []
  let handlers: DoorHandlers | undefined
  let open = 0
  const accept = (socket: TcpSocket): void => {
    if (open >= MOST_CONNECTIONS || (handlers === undefined && waiting.length >= MOST_WAITING)) {
      socket.reset()
      handlers?.rejected?.('connections')
      return
    }
    open += 1
    socket.onClosed = () => {
      open -= 1
    }
    if (handlers === undefined) waiting.push(socket)
    else handlers.proxied(socket)
  }
  const listener = listenLoopback(accept)
  return {
    recordsRefusals: true,
    ipv6: false,
    proxy: { address: '127.0.0.1', port: listener.port, secret },
    wrap: [],
    within: start => start(),
    enter: argv => [...argv],
    serve: async given => {
      handlers = given
      for (const socket of waiting.splice(0)) given.proxied(socket)
    },
    refusedDatagrams: async () => [],
    settle: async () => undefined,
    close: () => listener.stop(),
  }
}

/** All proxy variables that programs read. There is no NO_PROXY: services of the host need a rule too. */
export function proxyVariables({ address, port, secret }: Door['proxy']) {
  const value = `http://${PROXY_USER}:${secret}@${address}:${port}`
  return [
    'PEN_PROXY',
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'http_proxy',
    'https_proxy',
    'all_proxy',
  ].map(name => ({ name, value, secret: true }))
}
