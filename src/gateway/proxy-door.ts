/**
 * The gateway's part where there is no namespace: an HTTP proxy on a port of the host's loopback, behind a secret that only the sandbox is
 * told. Programs that ignore their proxy variables go their own way: that is the accepted gap. When this process dies, the proxy is gone.
 */
import { randomBytes } from 'node:crypto'
import { listenLoopback } from './dial/tcp-connect.ts'
import type { Door, DoorHandlers } from './netns/door.ts'
import { PROXY_USER } from './proxy-secret.ts'
import type { TcpSocket } from './stream/tcp-socket.ts'

/** Each may cost two descriptors; strangers count too. */
const MOST_CONNECTIONS = 2048
/** Before the gateway serves there is no command yet that could have dialled. */
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

/** Under every name by which programs look for one. Nothing is exempt: the host's own services need a rule too. */
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
