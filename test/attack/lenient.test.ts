/** Real servers decide what a request is. A request that any of them answers for another host must not pass. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../gateway/client.ts'
import { answer, serveHttp } from '../gateway/recorder.ts'
import { World } from '../gateway/world.ts'
import { ODD_REQUESTS } from './lenient/requests.ts'
import { type LenientServer, startLenientServers } from './lenient/servers.ts'

const isForEvil = (said: string): boolean => /seen=\S*evil|uri=\w+:\/\/evil/.test(said)

let servers: readonly LenientServer[]
let world: World
beforeAll(async () => {
  servers = await startLenientServers()
  world = await World.start({ allow: ['allowed.test:80'] })
}, 60_000)
afterAll(async () => {
  await Promise.all((servers ?? []).map(server => server.stop()))
  await world.close()
})

/** The bytes that reach the server when a program sends these in two writes. */
async function passed(bytes: string, cut: number): Promise<string> {
  const own = await World.start({ allow: ['allowed.test:80'] })
  own.up.behave = () => undefined
  const client = await own.byName('allowed.test', 80)
  client.send(bytes.slice(0, cut))
  if (cut < bytes.length) {
    await Bun.sleep(20)
    client.send(bytes.slice(cut))
  }
  await client.over(300)
  const { text } = own.up
  await own.close()
  return text
}

/** In groups, so that a server with few threads is not blocked. */
async function each<T, R>(list: readonly T[], run: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < list.length; at += 12)
    results.push(...(await Promise.all(list.slice(at, at + 12).map(run))))
  return results
}

describe('P9 lenient servers', () => {
  test('P9 no server finds a request for another host in the bytes that pass', async () => {
    const answered = new Map(servers.map(({ name }) => [name, 0]))
    const leaks = await each(ODD_REQUESTS, async bytes => {
      const whole = await passed(bytes, bytes.length)
      const parts = await passed(bytes, bytes.lastIndexOf('evil') - 3)
      const found: string[] = []
      for (const server of servers) {
        if (isForEvil(await server.ask(bytes)))
          answered.set(server.name, (answered.get(server.name) ?? 0) + 1)
        for (const sent of new Set([whole, parts]))
          if (sent !== '' && isForEvil(await server.ask(sent)))
            found.push(`${server.name} ${JSON.stringify(bytes)}`)
      }
      return found
    })
    expect(leaks.flat()).toEqual([])
    // The servers answer without a gateway: the requests are valid to them.
    expect([...answered].filter(([, count]) => count < 2)).toEqual([])
  }, 120_000)

  test('P9 an HTTP answer to another protocol is held back, and ends the connection', async () => {
    world.up.behave = serveHttp(answer('for another host'))
    const client = await world.byName('allowed.test', 80)
    await client.send('\x01\x02\r\n\r\n').over()
    expect(client.text).toStartWith('HTTP/1.1 403')
    expect(client.text).not.toContain('for another host')
    expect(world.kinds().slice(-3)).toEqual([
      'connection-allowed',
      'connection-closed policy',
      'connection-denied refused-protocol',
    ])
    await eventually(() => world.up.seen.at(-1)?.closed === true)
  })

  test('P9 a server that answers in its own protocol may receive text about HTTP', async () => {
    world.up.behave = socket => void socket.write('+OK\r\n')
    const client = await world.byName('allowed.test', 80)
    await client.send('*1\r\n$4\r\nPING\r\n').heard('+OK')
    client.send(`SET page "GET / HTTP/1.1\r\nHost: evil.test\r\n"\r\n`)
    await eventually(() => world.up.seen.at(-1)?.text.includes('evil.test') === true)
    expect(client.closed).toBe(false)
  })
})
