import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { createServer, type Server } from 'node:net'
import { AF } from '../../base/kernel/socket.ts'
import type { Port } from '../../policy/network/port.ts'
import { SocketOwners } from '../netns/socket-owner.ts'
import { unconnected } from '../netns/sockets.ts'
import { BufferBudget } from '../stream/buffer-budget.ts'
import { dialInside } from './dial-inside.ts'
import { Forward, type ForwardContext } from './forward.ts'

/** Sends bytes that are not read until the buffers are full. Then it ends, or waits for its parent to end. */
const CLIENT = `
import select, socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
assert client.recv(1) == b"k"
client.setblocking(False)
while select.select([], [client], [], 1)[1]: client.send(b"x" * 65536)
print("full", flush=True)
sys.stdin.read()
`

const undo: (() => void)[] = []
afterEach(() => {
  for (const act of undo.splice(0).reverse()) act()
})

/** Sends a greeting and reads nothing. */
async function serve(): Promise<number> {
  const server: Server = createServer(socket => {
    undo.push(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.pause()
    socket.write('k')
  })
  undo.push(() => void server.close())
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return (server.address() as { port: number }).port
}

async function opened(): Promise<{ readonly forward: Forward; readonly places: () => number }> {
  const owners = new SocketOwners()
  let places = 0
  const context: ForwardContext = {
    dial: port => dialInside({ v4: unconnected(AF.inet), v6: undefined }, port),
    owners,
    held: new BufferBudget(32 * 2 ** 20),
    users: new Set([process.geteuid?.() ?? 0]),
    enter: () => ++places > 0,
    leave: () => void places--,
  }
  const forward = new Forward({ guest: (await serve()) as Port, host: 0 }, context)
  undo.push(
    () => owners.close(),
    () => forward.close(),
  )
  return { forward, places: () => places }
}

async function send(port: number) {
  const client = spawn('python3', ['-c', CLIENT, String(port)], { stdio: ['pipe', 'pipe', 'inherit'] })
  undo.push(() => void client.kill('SIGKILL'))
  await new Promise<void>(done => client.stdout.once('data', () => done()))
  const ended = new Promise<void>(done => client.once('exit', () => done()))
  const end = async (): Promise<void> => {
    client.stdin.end()
    await ended
  }
  return { end }
}

async function until(what: () => boolean): Promise<void> {
  for (const late = performance.now() + 10_000; !what(); await Bun.sleep(5))
    if (performance.now() > late) throw new Error(`it did not happen: ${what}`)
}

/** Simulates that this much time has passed. */
function sweepAfter(forward: Forward, ms: number): void {
  const now = performance.now() + ms
  const clock = spyOn(performance, 'now').mockReturnValue(now)
  forward.sweep()
  clock.mockRestore()
}

describe('a connection without a client whose bytes the server does not read', () => {
  test('ends when it stalls, and not before', async () => {
    const { forward, places } = await opened()
    await (await send(forward.host)).end()
    sweepAfter(forward, 1000)
    await Bun.sleep(20)
    expect(places()).toBe(1)
    sweepAfter(forward, 120_000)
    await until(() => places() === 0)
  })

  test('stays open as long as its client exists', async () => {
    const { forward, places } = await opened()
    const client = await send(forward.host)
    sweepAfter(forward, 120_000)
    await Bun.sleep(20)
    expect(places()).toBe(1)
    await client.end()
    sweepAfter(forward, 120_000)
    await until(() => places() === 0)
  })
})
