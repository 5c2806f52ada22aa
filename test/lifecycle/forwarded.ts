/** A server in a sandbox, and clients on the host. */
import { createServer, connect as dial, type Socket } from 'node:net'
import type { Command, ProjectSandbox } from './project-sandbox.ts'

/** Greets, echoes everything, and closes when its client does. */
const SERVER = `
import socketserver, socket, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"hello ")
        while True:
            data = self.request.recv(65536)
            if not data: break
            self.request.sendall(data)
        self.request.shutdown(socket.SHUT_WR)
class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
with Server((sys.argv[1], int(sys.argv[2])), Echo) as server:
    print("listens", flush=True)
    server.serve_forever()
`

/** Waits until the sandbox ends. */
export async function serveInside(
  here: ProjectSandbox,
  port: number,
  address = '127.0.0.1',
): Promise<Command> {
  const server = here.start(['exec', '--', 'python3', '-c', SERVER, address, String(port)], {
    timeoutMs: 60_000,
  })
  await server.printed('listens')
  return server
}

export interface ForwardedPort {
  readonly guest: number
  readonly host: number
  readonly addresses: readonly string[]
}

export interface Forwarding {
  readonly command: Command
  readonly ports: readonly ForwardedPort[]
}

export async function forward(here: ProjectSandbox, ...ports: string[]): Promise<Forwarding> {
  const command = here.start(['forward', '--json', ...ports], { timeoutMs: 60_000 })
  await command.printed('}]}')
  return { command, ports: JSON.parse(command.stdout()).ports }
}

/** A port that is free on the host now, in both families. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(done => server.listen(0, '::', done))
  const { port } = server.address() as { port: number }
  await new Promise(done => server.close(done))
  return port
}

/** What came back until the other side closed, or the name of the error. */
export function exchange(port: number, sent: string | Uint8Array, address = '127.0.0.1'): Promise<string> {
  return bytesBack(port, sent, address).then(
    bytes => bytes.toString('latin1'),
    (error: NodeJS.ErrnoException) => error.code ?? String(error),
  )
}

export function bytesBack(port: number, sent: string | Uint8Array, address = '127.0.0.1'): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    const socket = dial({ port, host: address, allowHalfOpen: true })
    const late = setTimeout(() => socket.destroy(new Error('late')), 30_000)
    socket.once('connect', () => socket.end(sent))
    socket.on('data', (part: Buffer) => parts.push(part))
    socket.once('end', () => resolve(Buffer.concat(parts)))
    socket.once('error', reject)
    socket.once('close', () => {
      clearTimeout(late)
      resolve(Buffer.concat(parts))
    })
  })
}

/** A connection that has been greeted, and stays open. */
export function greeted(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = dial({ port, host: '127.0.0.1' })
    socket.on('error', reject)
    socket.once('data', () => resolve(socket))
  })
}

/** A host program that reads its greeting. */
export const CLIENT = `
import socket, sys
try:
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
    print("got", s.recv(100))
except OSError as e: print("got nothing", e)
`
