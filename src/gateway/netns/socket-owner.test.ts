import { describe, expect } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { onlyWhen } from '../../../test/skip.ts'
import { type SocketEnd, SocketOwners } from './socket-owner.ts'

const onLinux = onlyWhen(process.platform === 'linux')
const me = process.geteuid?.()

async function connected(
  address: string,
  body: (own: SocketEnd, peer: SocketEnd, client: Socket) => unknown,
) {
  const server = createServer({ allowHalfOpen: true })
  await new Promise<void>(done => server.listen(0, address, done))
  const { port } = server.address() as SocketEnd & { port: number }
  const accepted = new Promise<Socket>(done => server.once('connection', done))
  const client = connect(port, address)
  const other = await accepted
  try {
    await body({ address, port: other.remotePort ?? 0 }, { address, port }, client)
  } finally {
    other.destroy()
    client.destroy()
    server.close()
  }
}

describe('the owner of a socket', () => {
  for (const address of ['127.0.0.1', '::1'])
    onLinux(`is known for a connection and a listener at ${address}`, async () => {
      const owners = new SocketOwners()
      await connected(address, (own, peer) => {
        expect(owners.userOf(own, peer)).toBe(me)
        expect(owners.userOf(peer)).toBe(me)
      })
      owners.close()
    })

  onLinux('is unknown for an absent socket, another pair of ports, or an invalid address', async () => {
    const owners = new SocketOwners()
    await connected('127.0.0.1', (own, peer) => {
      expect(owners.userOf({ ...own, address: '127.0.0.9' }, peer)).toBeUndefined()
      expect(owners.userOf(own, { ...peer, port: 1 })).toBeUndefined()
      expect(owners.userOf(own, { ...peer, address: '::1' })).toBeUndefined()
      // A program listens there, but is not connected.
      expect(owners.userOf(peer, { ...own, port: 1 })).toBeUndefined()
      expect(owners.userOf({ ...own, address: 'nowhere' }, peer)).toBeUndefined()
    })
    owners.close()
  })

  onLinux('is unknown after its program closed it, whichever user the kernel reports', async () => {
    const owners = new SocketOwners()
    await connected('127.0.0.1', async (own, peer, client) => {
      await new Promise(done => {
        client.once('close', done)
        client.destroy()
      })
      for (const late = performance.now() + 5000; owners.userOf(own, peer) !== undefined; await Bun.sleep(2))
        if (performance.now() > late) break
      expect(owners.userOf(own, peer)).toBeUndefined()
    })
    owners.close()
  })
})
