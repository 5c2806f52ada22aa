import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type AddressInfo, connect } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { echo, type Recorder } from '../../../test/gateway/recorder.ts'
import { selfSigned } from '../../../test/gateway/self-signed.ts'
import { policyOf, World } from '../../../test/gateway/world.ts'

const PROXY = '10.9.8.7'
const GET = 'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n'
let world: World
let proxy: Recorder
beforeEach(async () => {
  world = await World.start()
  world.zone['proxy.corp.test'] = [PROXY]
  proxy = await world.recorder(PROXY)
  const allow = ['allowed.test:80', 'allowed.test:22', '203.0.113.7:5432', 'host.pen.internal:80']
  world.policy = policyOf({ allow }, { upstreamProxy: 'http://me:s%40cret@proxy.corp.test:3128' })
  proxy.behave = (socket, seen, text) =>
    seen.text.endsWith('\r\n\r\n') && seen.text.split('\r\n\r\n').length === 2
      ? void socket.write('HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n')
      : echo(socket, seen, text)
})
afterEach(() => world.close())

describe('an upstream proxy in the policy', () => {
  test('gets the name unresolved, and only it gets its password', async () => {
    const client = await world.byName('allowed.test', 22)
    await client.send('\x01hello').heard('hello')
    const basic = Buffer.from('me:s@cret').toString('base64')
    expect(proxy.text).toBe(
      `CONNECT allowed.test:22 HTTP/1.1\r\nHost: allowed.test:22\r\nProxy-Authorization: Basic ${basic}\r\n\r\n\x01hello`,
    )
    expect(world.lookups).toEqual(['proxy.corp.test'])
    expect(JSON.stringify(world.audit)).not.toMatch(/cret|bWU6/)
  })

  test('bytes that follow its reply at once are not lost', async () => {
    proxy.behave = socket => void socket.write('HTTP/1.0 200 OK\r\n\r\nSSH-2.0-x\r\n')
    const client = await world.byName('allowed.test', 22)
    await client.heard('SSH-2.0-x\r\n')
    expect(client.text).toBe('SSH-2.0-x\r\n')
  })

  for (const [what, reply] of Object.entries({
    'a refusal': 'HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\ncret!',
    nonsense: 'hello\r\n\r\n',
    'a line that ends in LF': 'HTTP/1.1 200 OK\n\n',
    'a number that is no status': 'HTTP/1.1 2000 OK\r\n\r\n',
  }))
    test(`${what} is an upstream failure, reported without text of the proxy`, async () => {
      proxy.behave = socket => void socket.write(reply)
      const client = await world.byName('allowed.test', 80)
      await client.send(GET).over()
      expect(client.text).toStartWith('HTTP/1.1 502')
      expect(client.text).not.toContain('cret')
      expect(world.kinds()).toEqual(['connection-allowed', 'connection-failed upstream-proxy'])
    })

  test('that closes without a reply is reported at once', async () => {
    proxy.behave = socket => void socket.end('HTTP/1.1 20')
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).over()
    expect(client.text).toStartWith('HTTP/1.1 502')
    expect(client.text).toContain('closed the connection')
  })

  test('may have a percent sign in its password', async () => {
    world.policy = policyOf({}, { upstreamProxy: 'http://me:50%@proxy.corp.test:3128' })
    const client = await world.byName('allowed.test', 80)
    await client.send(GET).heard('GET /')
    expect(proxy.text).toContain(`Basic ${Buffer.from('me:50%').toString('base64')}\r\n`)
  })

  for (const [what, url] of Object.entries({ name: 'proxy.corp.test', address: PROXY }))
    test(`with an untrusted certificate gets no request, addressed by its ${what}`, async () => {
      const heard: string[] = []
      const secure = createTls(selfSigned(), socket => {
        socket.on('data', data => heard.push(data.toString('latin1'))).on('error', () => undefined)
      })
      await new Promise<void>(resolve => secure.listen(0, '127.0.0.1', resolve))
      const inner = connect({ port: (secure.address() as AddressInfo).port, host: '127.0.0.1' })
      proxy.behave = (socket, _seen, text) => {
        if (inner.listenerCount('data') === 0) inner.on('data', data => socket.write(data))
        inner.write(text, 'latin1')
      }
      world.policy = policyOf({}, { upstreamProxy: `https://me:s%40cret@${url}:3128` })
      const client = await world.byName('allowed.test', 80)
      await client.send(GET).over()
      inner.destroy()
      secure.close()
      expect(client.text).toContain('no valid certificate')
      expect(heard).toEqual([])
    })

  test('a refused name does not reach it', async () => {
    const client = await world.byName('evil.test', 80)
    await client.send('GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n').over()
    expect(client.text).toStartWith('HTTP/1.1 403')
    expect(proxy.seen).toEqual([])
  })

  test('a service of this machine does not go through it', async () => {
    const local = await world.recorder('127.0.0.1')
    const client = await world.byName('host.pen.internal', 80)
    await client.send('GET / HTTP/1.1\r\nHost: host.pen.internal\r\n\r\n').heard('ok')
    expect(local.requests.length).toBe(1)
    expect(proxy.seen).toEqual([])
  })
})
