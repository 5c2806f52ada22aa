import { expect, test } from 'bun:test'
import { eventually } from '../../../test/gateway/client.ts'
import { listenHere } from '../../../test/gateway/listen.ts'
import { parseAddress } from '../../policy/network/address.ts'
import { parsePort } from '../../policy/network/port.ts'
import { connectTcp } from './tcp-connect.ts'

function dial(number: number) {
  const address = parseAddress('127.0.0.1')
  const port = parsePort(String(number))
  if (!address.ok || !port.ok) throw new Error('no address')
  return connectTcp(address.value, port.value, () => undefined)
}

test('P13 many connections at once are all accepted, and other work runs in between', async () => {
  let turn = 0
  const inTurn = new Map<number, number>()
  const listener = listenHere(socket => {
    inTurn.set(turn, (inTurn.get(turn) ?? 0) + 1)
    socket.destroy()
  })
  const ticking = setInterval(() => turn++, 0)
  try {
    // They wait in the kernel before the first one is accepted.
    const clients = Array.from({ length: 400 }, () => dial(listener.port))
    const accepted = () => [...inTurn.values()].reduce((sum, count) => sum + count, 0)
    await eventually(() => accepted() === 400, 10_000)
    expect(inTurn.size).toBeGreaterThan(2)
    for (const client of clients) client.destroy()
  } finally {
    clearInterval(ticking)
    listener.stop()
  }
  const late = dial(listener.port)
  await Bun.sleep(20)
  expect([...inTurn.values()].reduce((sum, count) => sum + count, 0)).toBe(400)
  late.destroy()
})
