import { afterEach, describe, expect, jest, test } from 'bun:test'
import { listenHere } from '../../../test/gateway/listen.ts'
import { address, policyOf, port } from '../../../test/gateway/world.ts'
import { DEFAULT_LIMITS, type GatewayLimits } from '../limits.ts'
import { TcpSocket } from '../stream/tcp-socket.ts'
import { type Connect, Dialer } from './dial.ts'
import { Cancellation } from './dial-result.ts'
import { connectTcp } from './tcp-connect.ts'

const MANY = Array.from({ length: 32 }, (_, i) => address(`198.51.100.${i + 1}`))
class Unanswered extends TcpSocket {
  isOpen: boolean = true
  override destroy(): void {
    this.isOpen = false
  }
}

const sockets: Unanswered[] = []
const open = () => sockets.filter(socket => socket.isOpen).length
let most = 0

/** Sent and never answered. */
const intoNothing: Connect = () => {
  const socket = new Unanswered()
  sockets.push(socket)
  most = Math.max(most, open())
  return socket
}

const dialer = (connect: Connect, limits: Partial<GatewayLimits> = {}) =>
  new Dialer({
    network: () => policyOf({}),
    resolver: { resolve: () => Promise.reject(new Error('not used')) },
    limits: { ...DEFAULT_LIMITS, connectMs: 400, staggerMs: 5, ...limits },
    connect,
  })

afterEach(() => {
  jest.useRealTimers()
  for (const socket of sockets.splice(0)) socket.destroy()
  most = 0
})

describe('a server with many addresses that do not answer', () => {
  test('is tried at all of them with few descriptors at a time', async () => {
    jest.useFakeTimers()
    const result = dialer(intoNothing).connectAny(MANY, port(443), new Cancellation())
    jest.advanceTimersByTime(400)
    expect(await result).toMatchObject({ kind: 'failed', reason: 'upstream-timeout' })
    expect(sockets.length).toBe(32)
    expect([most, open()]).toEqual([4, 0])
  })

  test('costs one descriptor per client, plus a few for all of them', async () => {
    jest.useFakeTimers()
    const one = dialer(intoNothing, { maxBeside: 8 })
    const interests = Array.from({ length: 50 }, () => new Cancellation())
    const results = interests.map(cancellation => one.connectAny(MANY, port(443), cancellation))
    jest.advanceTimersByTime(100)
    expect(most).toBe(58)
    for (const cancellation of interests.slice(0, 25)) cancellation.cancel()
    jest.advanceTimersByTime(400)
    await Promise.all(results)
    expect(open()).toBe(0)
    most = 0
    const again = one.connectAny(MANY, port(443), new Cancellation())
    jest.advanceTimersByTime(400)
    await again
    expect(most).toBe(4)
  })

  test('is reached when only the last address answers', async () => {
    const server = listenHere(socket => socket.destroy())
    const here = port(server.port)
    const last = MANY.at(-1)
    const connect: Connect = (to, at, done) =>
      to === last ? connectTcp(address('127.0.0.1'), at, done) : intoNothing(to, at, done)
    const result = await dialer(connect, { connectMs: 20_000 }).connectAny(MANY, here, new Cancellation())
    expect(result).toMatchObject({ kind: 'connected', address: last })
    expect(open()).toBe(0)
    if (result.kind === 'connected') result.stream.socket.destroy()
    server.stop()
  })
})

describe('an absent server', () => {
  for (const at of ['127.0.0.1', '::1'])
    test(`is reported as refused, at ${at}`, async () => {
      const result = await dialer(connectTcp).connectAny([address(at)], port(1), new Cancellation())
      expect(result).toMatchObject({
        kind: 'failed',
        why: 'the server could not be reached (ECONNREFUSED)',
      })
    })
})
