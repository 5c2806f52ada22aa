import { afterEach, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import type { Client } from '../../../test/gateway/client.ts'
import { answer, type Recorder, serveHttp } from '../../../test/gateway/recorder.ts'
import { host, indexOf, policyOf, World } from '../../../test/gateway/world.ts'
import { Vault } from './vault.ts'

const authority = newAuthority('inside')
const outside = newAuthority('outside')
const AUTH = 'auth.allowed.test'
const ACCESS = 'sk-ant-oat01-REALaccess0123456789'
const REFRESH = 'sk-ant-ort01-REALrefresh123456789'
const SECRET = {
  name: 'SIGN_IN',
  from: { oauth: [`${AUTH}:443/v1/oauth/token`] },
  to: ['allowed.test:443'],
  in: ['header:authorization'],
}

/** `REAL` becomes `FAKE`, so that a test can see which is which. */
const fake = (text: string): string => text.replaceAll('REAL', 'FAKE')
const kept: { name: string; value: string; placeholder: string }[] = []
let dropped: typeof kept = []
const tokens = {
  all: () => kept,
  seen: () => [...dropped, ...kept],
  keep: (name: string, value: string) => {
    if (!kept.some(token => token.value === value)) kept.push({ name, value, placeholder: fake(value) })
    return fake(value)
  },
}

let world: World
let auth: Recorder
afterEach(() => {
  kept.length = 0
  dropped = []
  expect(JSON.stringify(world.audit)).not.toContain('REAL')
  return world.close()
})

async function start(reply: string): Promise<void> {
  const vault = new Vault(indexOf([SECRET]), [], [], tokens)
  const allow = ['allowed.test:443', `${AUTH}:443`, 'evil.test:80']
  world = await World.start({ allow, authority, outside, vault, secrets: [SECRET] })
  world.zone[AUTH] = ['198.51.100.20']
  auth = await world.recorder('198.51.100.20', outside.leafFor(host(AUTH)))
  auth.behave = serveHttp(reply)
}

async function connect(name: string): Promise<Client> {
  const client = await world.byTls(name, 443)
  if (client === undefined) throw new Error('no handshake')
  return client
}

async function post(body: string, path = '/v1/oauth/token', more = ''): Promise<string> {
  const client = await connect(AUTH)
  await client
    .send(
      `POST ${path} HTTP/1.1\r\nHost: ${AUTH}\r\nConnection: close\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`,
    )
    .over()
  return client.text
}

async function get(name: string, path: string): Promise<string> {
  const client = await connect(name)
  await client.send(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`).over()
  return client.text
}

const bodyOf = (text: string): unknown => JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4))
const TOKENS = {
  token_type: 'Bearer',
  access_token: ACCESS,
  refresh_token: REFRESH,
  expires_in: 3600,
  scope: 'a b',
}

describe('a sign-in', () => {
  test('gets placeholders, and its next requests get tokens', async () => {
    const fields = `Content-Type: application/json\r\nSet-Cookie: session=${ACCESS}; Path=/\r\n`
    await start(answer(JSON.stringify(TOKENS), fields))
    const said = await post('{"grant_type":"authorization_code","code":"c"}')
    expect(bodyOf(said)).toEqual({ ...TOKENS, access_token: fake(ACCESS), refresh_token: fake(REFRESH) })
    expect(said).toContain('Content-Type: application/json')
    expect(said).toContain(`Set-Cookie: session=${fake(ACCESS)}; Path=/\r\n`)
    const client = await connect('allowed.test')
    await client
      .send(`GET /v1 HTTP/1.1\r\nHost: allowed.test\r\nAuthorization: Bearer ${fake(ACCESS)}\r\n\r\n`)
      .heard('ok')
    expect(world.up.text).toContain(`Authorization: Bearer ${ACCESS}\r\n`)
    await post(JSON.stringify({ grant_type: 'refresh_token', refresh_token: fake(REFRESH) }))
    await post(`grant_type=refresh_token&refresh_token=${encodeURIComponent(fake(REFRESH))}`)
    expect(auth.text).toContain(`"refresh_token":"${REFRESH}"`)
    expect(auth.text).toContain(`refresh_token=${REFRESH}`)
    expect(auth.text).not.toContain('FAKE')
    expect(world.audit).toContainEqual(
      expect.objectContaining({ path: '/v1/oauth/token', secrets: ['SIGN_IN'] }),
    )
  })

  test('a token under another key, in an array or in an error is a placeholder too', async () => {
    const nested = { data: [{ id_token: REFRESH }], note: `use ${REFRESH}`, access_token: null }
    await start(answer(JSON.stringify(nested)))
    expect(bodyOf(await post('x'))).toEqual(JSON.parse(fake(JSON.stringify(nested))))
    auth.behave = serveHttp(`HTTP/1.1 400 Bad\r\nContent-Length: ${REFRESH.length}\r\n\r\n${REFRESH}`)
    expect(await post('x')).toEndWith(fake(REFRESH))
  })

  test('a token that an error repeats as it was sent is a placeholder: percent-encoded or in base64', async () => {
    const token = '1//0REAL+refresh/0123456789+REALrefresh'
    await start(answer(JSON.stringify({ refresh_token: token })))
    await post('x')
    const refused = (text: string): string =>
      `HTTP/1.1 400 Bad\r\nContent-Length: ${text.length}\r\n\r\n${text}`
    const { length } = auth.requests
    for (const write of [encodeURIComponent, (text: string) => Buffer.from(text).toString('base64')]) {
      auth.behave = serveHttp(refused(`no such token: ${write(token)}.`))
      expect(await post(`refresh_token=${encodeURIComponent(fake(token))}`)).toEndWith(
        `: ${write(fake(token))}.`,
      )
      auth.behave = serveHttp(refused(JSON.stringify({ error: write(token) })))
      expect(await post('x')).toEndWith(JSON.stringify({ error: write(fake(token)) }))
    }
    expect(auth.requests.length - length).toBe(4)
  })

  test('at a path that a field names is refused', async () => {
    await start(answer(JSON.stringify(TOKENS)))
    for (const field of ['X-Original-URL', 'X_Rewrite_Url'])
      expect(await post('x', '/v1', `${field}: /v1/oauth/token\r\n`)).toContain('x-pen-denied: bad-request')
    expect(auth.text).toBe('')
    expect(await post('x', '/v1', 'X-Original-Host: a\r\n')).toStartWith('HTTP/1.1 200')
  })

  const long = JSON.stringify({ pad: 'x'.repeat(300_000), ...TOKENS })
  const chunked = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n`
  const json = JSON.stringify(TOKENS)
  const cases: Readonly<Record<string, readonly [reply: string, passes: boolean]>> = {
    'in chunks': [
      `${chunked}10\r\n${json.slice(0, 16)}\r\n${(json.length - 16).toString(16)}\r\n${json.slice(16)}\r\n0\r\n\r\n`,
      true,
    ],
    'with escapes in key and value': [
      answer(json.replace('access_token', 'access\\u005ftoken').replace('oat01', 'o\\u0061t01')),
      true,
    ],
    'with a key twice': [answer(`{"access_token":"${ACCESS}","access_token":"${REFRESH}"}`), true],
    'with a key twice, once escaped': [
      answer(`{"access\\u005ftoken":"${ACCESS}","access_token":"${REFRESH}"}`),
      true,
    ],
    'with a key in other case': [answer(`{"Access_Token":"${ACCESS}","refreshToken":"${REFRESH}"}`), true],
    empty: ['HTTP/1.1 204 No\r\n\r\n', true],
    'not JSON': [answer(`access_token=${ACCESS}`), false],
    'of two values': [answer(`${json}${json}`), false],
    'with a byte order mark and a tail': [answer(`${json}\r\n<!-- ${ACCESS} -->`), false],
    'with a token that is an object': [answer(`{"access_token":{"value":"${ACCESS}"}}`), false],
    'with a token that has a space': [answer(`{"access_token":"${ACCESS} ${REFRESH}"}`), false],
    'too long': [answer(long), false],
    'nested without end': [answer(`${'['.repeat(50)}"${ACCESS}"${']'.repeat(50)}`), false],
    'cut short': [`HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n${json}`, false],
    compressed: [answer(gzipSync(json).toString('latin1'), 'Content-Encoding: gzip\r\n'), false],
  }
  for (const [what, [reply, passes]] of Object.entries(cases))
    test(`with an answer ${what} ${passes ? 'has no token' : 'is refused'}`, async () => {
      await start(reply)
      auth.isPolite = true
      const { behave } = auth
      if (what === 'cut short')
        auth.behave = (socket, seen, text) => {
          behave(socket, seen, text)
          socket.end()
        }
      const said = await post('grant_type=authorization_code')
      expect(said).not.toContain('REAL')
      expect(said.startsWith('HTTP/1.1 2')).toBe(passes)
    })

  test.each(['/V1/oauth//token', '/v1/oauth/token;x', '/v1/oauth/%74oken/', '/v1/%6Fauth', '/x?grant=token'])(
    'at another spelling of the path gets placeholders too: %s',
    async path => {
      await start(answer(JSON.stringify(TOKENS)))
      expect(await post('x', path)).not.toContain('REAL')
    },
  )

  test.each(['/v1/oauth/token', '/V1/oauth//token;x', '/v1/oauth/%74oken/?a'])(
    'by GET at the token endpoint gets placeholders too, and another GET passes: %s',
    async path => {
      await start(answer(JSON.stringify(TOKENS)))
      expect(await get(AUTH, path)).toContain('FAKE')
      auth.behave = serveHttp(answer('a file'))
      expect(await get(AUTH, '/files/turkey.png')).toEndWith('a file')
    },
  )

  test('of a secret that was removed is refused, so that no token comes inside', async () => {
    await start(answer(JSON.stringify(TOKENS)))
    expect(await post('x')).toContain('FAKE')
    world.policy = policyOf({ allow: [`${AUTH}:443`] })
    world.gateway.policyChanged()
    expect(await post('x')).toContain('x-pen-denied: secret-removed')
    expect(auth.requests).toHaveLength(1)
    expect(await get(AUTH, '/about')).toStartWith('HTTP/1.1 200')
  })

  test.each(['from the config', 'from the store'])(
    'that is removed %s while the server answers keeps no token, and the next one does',
    async where => {
      await start(answer(JSON.stringify(TOKENS)))
      await post('x')
      const remove = (): void => {
        if (where === 'from the store') dropped = kept.splice(0)
        else world.policy = policyOf({ allow: [`${AUTH}:443`] })
      }
      const renewed = answer(JSON.stringify({ ...TOKENS, access_token: `${ACCESS}2` }))
      auth.behave = socket => {
        remove()
        socket.write(renewed)
      }
      const said = await post(`refresh_token=${fake(REFRESH)}`)
      expect(auth.text).toContain(`refresh_token=${REFRESH}`)
      expect(said).toStartWith('HTTP/1.1 502')
      expect(said).not.toMatch(/REAL|FAKE/)
      expect(kept.map(({ value }) => value)).not.toContain(`${ACCESS}2`)
      if (where !== 'from the store') return
      auth.behave = serveHttp(renewed)
      expect(await post('code=c')).toContain('FAKE')
      expect(kept.map(({ value }) => value)).toContain(`${ACCESS}2`)
    },
  )

  test('a token that is no longer kept is still a placeholder in answers', async () => {
    await start(answer(JSON.stringify(TOKENS)))
    await post('x')
    dropped = kept.splice(0)
    world.up.behave = serveHttp(answer(`you sent ${ACCESS}`))
    expect(await get('allowed.test', '/v1')).toEndWith(`you sent ${fake(ACCESS)}`)
  })

  test('with a long body, or over another path than it may, is refused', async () => {
    await start(answer(JSON.stringify(TOKENS)))
    expect(await post('x'.repeat(70_000))).toContain('x-pen-denied: not-exchanged')
    expect(await post('x', '/v1/../oauth/token')).toContain('x-pen-denied: bad-request')
    expect(auth.text).toBe('')
  })

  test('a token is put into the body at the token endpoint only, and also after a field that changes the method', async () => {
    await start(answer(JSON.stringify(TOKENS)))
    await post('x')
    for (const path of ['/v1/oauth/tokens', '/v1/oauth/token/x', '/V1/oauth/token', '/notes'])
      await post(`keep=${fake(REFRESH)}`, path)
    expect(auth.text).not.toContain('REAL')
    expect(auth.text).toContain(`keep=${fake(REFRESH)}`)
    // A body that has no tokens is not held.
    expect(await post('x'.repeat(70_000), '/v1/count_tokens')).toContain('FAKE')
    const client = await connect(AUTH)
    const head = `GET /v1/oauth/token HTTP/1.1\r\nHost: ${AUTH}\r\nX-HTTP-Method-Override: POST\r\n\r\n`
    await client.send(head).over()
    expect(client.text).toContain('FAKE')
    expect(client.text).not.toContain('REAL')
  })

  test('a token for another host is refused, and its answer is searched at its own', async () => {
    await start(answer(JSON.stringify(TOKENS)))
    await post('x')
    const evil = await world.byName('evil.test', 80)
    await evil
      .send(`GET / HTTP/1.1\r\nHost: evil.test\r\nAuthorization: Bearer ${fake(ACCESS)}\r\n\r\n`)
      .over()
    expect(evil.text).toContain('x-pen-denied: secret-elsewhere')
    world.up.behave = serveHttp(answer(`you sent ${ACCESS}`))
    const client = await connect('allowed.test')
    await client.send('GET /v1 HTTP/1.1\r\nHost: allowed.test\r\n\r\n').heard('you sent')
    expect(client.text).toEndWith(`you sent ${fake(ACCESS)}`)
  })
})
