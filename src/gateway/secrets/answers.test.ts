import { afterEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import type { Client } from '../../../test/gateway/client.ts'
import { answer, serveHttp } from '../../../test/gateway/recorder.ts'
import { indexOf, World, type WorldOptions } from '../../../test/gateway/world.ts'
import { AnswerScan } from './answer-scan.ts'
import { Vault } from './vault.ts'

const authority = newAuthority('inside')
const outside = newAuthority('outside')
const REAL = 'sk-ant-api03-REALREALREALREAL0001'
const FAKE = 'sk-ant-api03-fakefakefakefake9999'
const KEY = { name: 'API_KEY', to: ['allowed.test:443'], in: ['header:x-api-key', 'header:authorization'] }
let world: World
afterEach(() => {
  // No record ever has the value.
  expect(JSON.stringify(world.audit)).not.toContain(REAL)
  return world.close()
})

async function start(options: WorldOptions = {}): Promise<void> {
  const bound = indexOf(options.secrets ?? [KEY])
  const vault = new Vault(bound, [{ name: 'API_KEY', value: REAL, placeholder: FAKE }])
  const allow = ['allowed.test:443', 'allowed.test:80', 'evil.test:80']
  world = await World.start({ allow, authority, outside, vault, secrets: [KEY], ...options })
}
async function connect(): Promise<Client> {
  const client = await world.byTls('allowed.test', 443)
  if (client === undefined) throw new Error('no handshake')
  return client
}
const get = (fields: string, path = '/v1'): string =>
  `GET ${path} HTTP/1.1\r\nHost: allowed.test\r\n${fields}\r\n\r\n`
const basic = (text: string): string => Buffer.from(text).toString('base64')

describe('an answer that repeats the value', () => {
  test('has the placeholder, in fields and body, over chunk seams', async () => {
    await start()
    const half = REAL.length / 2
    world.up.behave = (socket, _seen, text) => {
      if (!text.startsWith('GET')) return
      const chunk = (part: string): string => `${part.length.toString(16)}\r\n${part}\r\n`
      socket.write(`HTTP/1.1 200 OK\r\nX-Echo: ${REAL}\r\nTransfer-Encoding: chunked\r\n\r\n`)
      socket.write(chunk(`you sent ${REAL.slice(0, half)}`))
      setTimeout(() => socket.write(`${chunk(`${REAL.slice(half)} and sk-ant`)}0\r\n\r\n`), 50)
    }
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`)).heard('0\r\n\r\n')
    expect(client.text).not.toContain('REAL')
    expect(client.text).toContain(`X-Echo: ${FAKE}\r\n`)
    expect(client.text.replaceAll(/\r\n[0-9a-f]+\r\n/g, '')).toContain(`you sent ${FAKE} and sk-ant`)
  })

  test('with a length stays as long as it says', async () => {
    await start()
    world.up.behave = serveHttp(answer(`${REAL}${REAL}${REAL.slice(0, 9)}`))
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`)).heard(FAKE + FAKE)
    await client.until(() => client.text.endsWith(`${FAKE}${REAL.slice(0, 9)}`))
    expect(client.text).toEndWith(`${FAKE}${FAKE}${REAL.slice(0, 9)}`)
  })

  test('in base64, as Basic authentication sent it, has the placeholder in base64', async () => {
    await start()
    world.up.behave = (socket, _seen, text) => {
      const [, sent = ''] = /Authorization: Basic (\S+)/.exec(text) ?? []
      socket.write(answer(`you sent ${sent}.`, `X-Echo: ${sent}\r\n`))
    }
    for (const user of ['', 'a', 'ab', 'abc']) {
      const client = await connect()
      await client.send(get(`Authorization: Basic ${basic(`${user}:${FAKE}`)}`)).heard('you sent')
      await client.until(() => client.text.endsWith('.'))
      expect(client.text).toContain(`X-Echo: ${basic(`${user}:${FAKE}`)}\r\n`)
      expect(client.text).toEndWith(`you sent ${basic(`${user}:${FAKE}`)}.`)
    }
  })

  test('in base64 that JSON or a URL escapes has the placeholder: as PHP, Gson, .NET and a form write it', async () => {
    const value = 'REAL/+aa?>~~ooREAL/+bb?>~~oo=='
    const placeholder = 'FAKE/+cc?>~~xxFAKE/+dd?>~~yy=='
    await start({ vault: new Vault(indexOf([KEY]), [{ name: 'API_KEY', value, placeholder }]) })
    const escapes: readonly ((text: string) => string)[] = [
      text => text.replaceAll('/', '\\/'),
      text => text.replaceAll('=', '\\u003d').replaceAll('>', '\\u003e'),
      text => text.replaceAll('+', '\\u002B').replaceAll('>', '\\u003E'),
      encodeURIComponent,
    ]
    for (const write of escapes)
      for (const text of [value, ...['', 'a', 'ab'].map(user => basic(`${user}:${value}`))]) {
        world.up.behave = serveHttp(answer(`you sent ${write(text)} -`))
        const client = await connect()
        await client.send(get(`X-Api-Key: ${placeholder}`)).heard(' -')
        const said = client.text.slice(client.text.indexOf('you sent ') + 9, -2)
        expect(said).toHaveLength(write(text).length)
        const plain = said
          .replaceAll('\\/', '/')
          .replaceAll(/(?:%|\\u00)(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
        expect([plain, Buffer.from(plain, 'base64').toString()].join()).not.toMatch(/REAL|\+aa|\+bb/)
      }
  })

  test('escaped in HTML has the placeholder: as Go, Python and PHP write it', async () => {
    const value = `REAL+<a>"b"&'REAL+cccc`
    const placeholder = `FAKE+<x>"y"&'FAKE+zzzz`
    await start({ vault: new Vault(indexOf([KEY]), [{ name: 'API_KEY', value, placeholder }]) })
    const write = (text: string, quote: string, apostrophe: string): string =>
      text
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;')
        .replaceAll('"', quote)
        .replaceAll("'", apostrophe)
    for (const [quote, apostrophe, plus] of [
      ['&#34;', '&#39;', '&#43;'],
      ['&#34;', '&#39;', '+'],
      ['&quot;', '&#x27;', '+'],
      ['&quot;', '&#039;', '+'],
    ] as const) {
      const written = (text: string): string => write(text, quote, apostrophe).replaceAll('+', plus)
      world.up.behave = serveHttp(answer(`<p>${written(value)}</p>`))
      const client = await connect()
      await client.send(get(`X-Api-Key: ${placeholder}`)).heard('</p>')
      expect(client.text).toEndWith(`<p>${written(placeholder)}</p>`)
    }
  })

  test('in base64 beside any other text has at most a few bits of its ends', async () => {
    await start()
    const texts = ['', 'a', 'ab'].map(before => basic(`${before}${REAL.slice(13)}|x`))
    world.up.behave = serveHttp(answer(`${texts.join(' ')} -`))
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`)).heard(' -')
    const found = client.text
      .split('\r\n\r\n')[1]
      ?.split(' ')
      .map(text => Buffer.from(text, 'base64').toString())
    for (const text of found ?? []) expect(text).not.toContain('EALREALREALREAL000')
  })

  test('percent-encoded, as a query sent it, has the placeholder in the same encoding', async () => {
    const value = 'key+with/reserved==REALREAL'
    const placeholder = 'abc+defg/hijklmno==QRSTUVWX'
    const secrets = [{ ...KEY, in: ['query:key'] }]
    const vault = new Vault(indexOf(secrets), [{ name: 'API_KEY', value, placeholder }])
    await start({ vault, secrets })
    world.up.behave = (socket, _seen, text) => void socket.write(answer(`${text.split(' ')[1]}!`))
    const client = await connect()
    await client.send(get('X: y', `/v1?key=${encodeURIComponent(placeholder)}`)).heard('!')
    expect(world.up.requests).toEqual([`GET /v1?key=${encodeURIComponent(value)} HTTP/1.1`])
    expect(client.text).toEndWith(`/v1?key=${encodeURIComponent(placeholder)}!`)
  })

  test('cut off after two thirds has the placeholder, and a shorter part passes', async () => {
    const [value, placeholder] = ['REALrealREALrealREALreal0000000001', 'FAKEfakeFAKEfakeFAKEfake9999999999']
    // Without `sk-ant-api03-`, which every key has.
    const start13 = REAL.slice(0, 13)
    const whole = { value: start13 + value, placeholder: start13 + placeholder }
    await start({ vault: new Vault(indexOf([KEY]), [{ name: 'API_KEY', ...whole }]) })
    // 23 of 34 characters are two thirds.
    const cut = (text: string): string => `${text.slice(0, 23)}. .${text.slice(-23)}. .${text.slice(5, 29)}`
    const short = ` ${start13}${value.slice(0, 22)} -`
    world.up.behave = serveHttp(answer(cut(value) + short))
    const client = await connect()
    await client.send(get(`X-Api-Key: ${whole.placeholder}`)).heard(' -')
    expect(client.text).toEndWith(cut(placeholder) + short)
  })

  test('no part of a short value is replaced: a program could guess the rest by that', async () => {
    await start()
    const guess = `${REAL.slice(0, -1)}X `.repeat(2)
    world.up.behave = serveHttp(answer(`${guess}-`))
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`)).heard(' -')
    expect(client.text).toEndWith(`${guess}-`)
  })

  test('as the name of a field is refused', async () => {
    await start()
    const names = [REAL, REAL.toLowerCase(), `X-${REAL.slice(10)}-Y`]
    for (const name of names) {
      world.up.behave = serveHttp(answer('xxxx', `${name}: 1\r\n`))
      const client = await connect()
      await client.send(get(`X-Api-Key: ${FAKE}`)).over()
      expect(client.text).toContain('HTTP/1.1 502')
      expect(client.text.toLowerCase()).not.toContain('realreal')
    }
  })

  for (const field of ['Grpc-Encoding: gzip', 'Connect-Content-Encoding: br', 'Content-Range: bytes 0-3/9'])
    test(`with ${field} is refused, because it cannot be searched`, async () => {
      await start()
      world.up.behave = serveHttp(answer('xxxx', `${field}\r\n`))
      const client = await connect()
      await client.send(get(`X-Api-Key: ${FAKE}`)).over()
      expect(client.text).toContain('HTTP/1.1 502')
      expect(client.text).not.toContain('xxxx')
    })

  test('compressed against the request, it is refused', async () => {
    await start()
    world.up.behave = serveHttp(answer('xxxx', 'Content-Encoding: gzip\r\n'))
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`)).over()
    expect(client.text).toContain('HTTP/1.1 502')
    expect(client.text).not.toContain('xxxx')
  })

  test('in a WebSocket it is replaced too', async () => {
    await start()
    world.up.behave = (socket, _seen, text) =>
      void socket.write(
        text.startsWith('GET')
          ? 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'
          : `your key is ${REAL}, bye`,
      )
    const client = await connect()
    await client
      .send(get(`X-Api-Key: ${FAKE}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x`))
      .heard('101')
    await client.send('hi').heard('bye')
    expect(client.text).toEndWith(`your key is ${FAKE}, bye`)
  })

  test('slowly, in an answer that stays open, has the placeholder after its first characters', async () => {
    const value = 'REAL4711real0815REAL4711real0815wxyz'
    const placeholder = 'FAKE0000fake1111FAKE2222fake3333abcd'
    const heads = [
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n',
      'HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    ]
    for (const reply of heads) {
      await start({ vault: new Vault(indexOf([KEY]), [{ name: 'API_KEY', value, placeholder }]) })
      world.up.behave = (socket, _seen, text) => {
        if (!text.startsWith('GET')) return
        socket.write(`${reply}key: `)
        const parts = [...(value.match(/.{1,6}/g) ?? []), ' -REAL4711', ' -end']
        for (const [i, part] of parts.entries()) setTimeout(() => socket.write(part), 80 * (i + 1))
      }
      const client = await connect()
      await client
        .send(get(`X-Api-Key: ${placeholder}\r\nUpgrade: websocket\r\nConnection: Upgrade`))
        .heard('-end')
      const said = client.text.slice(client.text.indexOf('key: ')).replaceAll(/\r\n[0-9a-f]*(?:\r\n)?/g, '')
      expect(said).toEndWith(`${placeholder.slice(11)} -REAL4711 -end`)
      await world.close()
    }
    await start()
  })

  test('that stays open without a length has its last bytes after a second', async () => {
    await start()
    const event = '{"type":"ADDED"}\n'
    world.up.behave = socket =>
      void socket.write(
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${event.length.toString(16)}\r\n${event}\r\n`,
      )
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}`)).heard('ADDED')
    await client.until(() => client.text.includes('"}\n'))
    expect(client.text).not.toContain('\r\n0\r\n')
  })

  test('slowly, a short value with a known beginning has the placeholder after its first characters', () => {
    const [value, placeholder] = ['sk-RealReal12345', 'sk-FakeFake98765']
    const scan = new AnswerScan([{ value, placeholder }])
    const said = [...value].map(byte => String(scan.next(Buffer.from(byte))) + String(scan.late()))
    expect(said.join('')).toBe(value.slice(0, 14) + placeholder.slice(14))
    expect(String(scan.next(Buffer.from('sk-Real'))) + String(scan.late())).toBe('sk-Real')
  })

  test('in a WebSocket, bytes that come with the head are searched, and the last ones before its end pass', async () => {
    await start()
    world.up.behave = socket =>
      void socket.end(
        `HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nyour key is ${REAL}, bye`,
      )
    const client = await connect()
    await client.send(get(`X-Api-Key: ${FAKE}\r\nUpgrade: websocket\r\nConnection: Upgrade`)).heard('bye')
    expect(client.text).toEndWith(`your key is ${FAKE}, bye`)
  })
})

test('however an answer is cut into pieces, the scan finds the value and loses no byte', async () => {
  await start()
  const value = 'aabaabaac'
  const placeholder = 'xxyxxyxxz'
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', 'aab', value), { maxLength: 30 })
    .map(parts => parts.join(''))
  fc.assert(
    fc.property(text, fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1 }), (whole, cuts) => {
      const scan = new AnswerScan([{ value, placeholder }])
      let out = ''
      for (let at = 0, i = 0; at < whole.length; i++) {
        const size = cuts[i % cuts.length] ?? 1
        out += scan.next(Buffer.from(whole.slice(at, at + size), 'latin1')).toString('latin1')
        at += size
      }
      out += scan.rest().toString('latin1')
      expect(out).toBe(whole.replaceAll(value, placeholder))
    }),
    { numRuns: 2000 },
  )
})
