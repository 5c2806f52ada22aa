import { afterEach, describe, expect, test } from 'bun:test'
import { newAuthority } from '../../../test/gateway/authorities.ts'
import { whyUnsigned } from '../../../test/gateway/aws-verifier.ts'
import type { Client } from '../../../test/gateway/client.ts'
import { answer, type Recorder, serveHttp } from '../../../test/gateway/recorder.ts'
import { host, indexOf, policyOf, World } from '../../../test/gateway/world.ts'
import { sha256 } from './aws-signature.ts'
import { Vault } from './vault.ts'

const authority = newAuthority('inside')
const outside = newAuthority('outside')
const REAL = {
  id: 'AKIAREALREALREAL0001',
  key: 'real/KEY+0123456789abcdefghijklmnopqrst',
  token: 'real//TOKEN+0123==',
}
const FAKE = {
  id: 'AKIAFAKEFAKEFAKE9999',
  key: 'fake/KEY+9876543210zyxwvutsrqponmlkjihg',
  token: 'fake//TOKEN+9876==',
}
const S3 = 's3.us-east-1.amazonaws.com'
const STS = 'sts.eu-central-1.amazonaws.com'
const OTHER = 'minio.allowed.test'
const SECRET = { name: 'AWS', sign: 'aws', to: [`${S3}:443`, `${STS}:443`, `${OTHER}:443`] }
const EMPTY = sha256('')

let world: World
const servers = new Map<string, Recorder>()
afterEach(() => {
  expect(JSON.stringify(world.audit)).not.toMatch(/REAL|real/)
  return world.close()
})

async function start(allow = [S3, STS, OTHER]): Promise<void> {
  const values = (['id', 'key', 'token'] as const).map(part => ({
    name: 'AWS',
    value: REAL[part],
    placeholder: FAKE[part],
  }))
  const vault = new Vault(indexOf([SECRET]), values, [
    { name: 'AWS', placeholder: FAKE.id, credentials: REAL },
  ])
  const options = { authority, outside, vault, secrets: [SECRET] }
  world = await World.start({ allow: [...allow.map(name => `${name}:443`), 'evil.test:80'], ...options })
  for (const [i, name] of [S3, STS, OTHER].entries()) {
    world.zone[name] = [`198.51.100.${20 + i}`]
    servers.set(name, await world.recorder(`198.51.100.${20 + i}`, outside.leafFor(host(name))))
  }
}

const serverOf = (name: string): Recorder => {
  const server = servers.get(name)
  if (server === undefined) throw new Error(name)
  return server
}

/** What the server says of the last request that it got. */
function judge(name: string): string | undefined {
  const { text } = serverOf(name)
  const at = text.indexOf('\r\n\r\n')
  const [line = '', ...lines] = text.slice(0, at).split('\r\n')
  const [method = '', url = ''] = line.split(' ')
  const headers = lines.map(
    each => [each.slice(0, each.indexOf(':')), each.slice(each.indexOf(':') + 1).trim()] as const,
  )
  const isChunked = headers.some(([field]) => field.toLowerCase() === 'transfer-encoding')
  const body = text.slice(at + 4)
  const whole = isChunked ? body.replaceAll(/[0-9a-f]+\r\n|\r\n/g, '') : body
  return whyUnsigned({ method, url, headers, body: whole }, REAL)
}

const scope = (service = 's3', region = 'us-east-1'): string => `20150830/${region}/${service}/aws4_request`
const signature = (more: { scope?: string; signed?: string; id?: string } = {}): string =>
  `Authorization: AWS4-HMAC-SHA256 Credential=${more.id ?? FAKE.id}/${more.scope ?? scope()}, SignedHeaders=${more.signed ?? 'host;x-amz-content-sha256;x-amz-date'}, Signature=${'0'.repeat(64)}`
const DATE = 'X-Amz-Date: 20150830T123600Z'
const hash = (value = EMPTY): string => `X-Amz-Content-Sha256: ${value}`
const s3 = (fields: readonly string[], line = 'GET /bucket/a%20b?list-type=2', body = ''): string =>
  `${line} HTTP/1.1\r\nHost: ${S3}\r\n${fields.join('\r\n')}\r\n${body === '' ? '' : `Content-Length: ${body.length}\r\n`}\r\n${body}`

async function connect(name: string): Promise<Client> {
  const client = await world.byTls(name, 443)
  if (client === undefined) throw new Error('no handshake')
  return client
}

async function ask(name: string, request: string): Promise<string> {
  const client = await connect(name)
  client.send(request)
  await client.until(() => /ok$|x-pen-|reason: /.test(client.text))
  return client.text
}

describe('a request signed with placeholders', () => {
  test('reaches the server with a good signature, and the record has the name of the secret', async () => {
    await start()
    const fields = [
      signature(),
      DATE,
      hash(),
      `X-Amz-Security-Token: ${FAKE.token}`,
      'Range: bytes=0-9',
      'X-Amz-Meta-B:  a   b ',
    ]
    expect(await ask(S3, s3(fields))).toEndWith('ok')
    expect(judge(S3)).toBeUndefined()
    const { text } = serverOf(S3)
    expect(text).not.toMatch(/FAKE|fake|20150830/)
    expect(text).toContain('Range: bytes=0-9')
    expect(world.audit).toContainEqual(expect.objectContaining({ kind: 'request-allowed', secrets: ['AWS'] }))
  })

  test('streams a body of which the client gave the hash, and the server checks it', async () => {
    await start()
    const put = (body: string, value: string) => s3([signature(), DATE, hash(value)], 'PUT /bucket/x', body)
    expect(await ask(S3, put('hello', sha256('hello')))).toContain('ok')
    expect(judge(S3)).toBeUndefined()
    for (const word of ['UNSIGNED-PAYLOAD', 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'])
      expect(await ask(S3, put('hello', word))).toContain('ok')
    await world.close()
    await start()
    await ask(S3, put('hello', sha256('other')))
    expect(judge(S3)).toBe('the body has another hash')
  })

  test('without a hash, the body is held and hashed, also in chunks and after 100-continue', async () => {
    await start()
    const head = `POST / HTTP/1.1\r\nHost: ${OTHER}\r\n${signature({ scope: scope('dynamodb') })}\r\n${DATE}\r\n`
    const client = await connect(OTHER)
    await client
      .send(`${head}Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n`)
      .heard('100 Continue')
    await client
      .send('3\r\nfir\r\n')
      .send('5\r\nst an\r\n')
      .send('5\r\nd all\r\n0\r\nX-Amz-Acl: x\r\nX-Sum: y\r\n\r\n')
      .heard('ok')
    expect(judge(OTHER)).toBeUndefined()
    // No signature covers a trailer.
    expect(serverOf(OTHER).text).not.toContain('X-Sum')
    expect(serverOf(OTHER).text).toContain('first and all')
    expect(serverOf(OTHER).text).not.toContain('Expect')
  })

  test('with a body that is too long to hold is refused', async () => {
    await start()
    const head = `POST / HTTP/1.1\r\nHost: ${OTHER}\r\n${signature({ scope: scope('dynamodb') })}\r\n${DATE}\r\n`
    expect(await ask(OTHER, `${head}Content-Length: 9000000\r\n\r\n`)).toContain('x-pen-denied: not-signed')
    const client = await connect(OTHER)
    client.send(`${head}Transfer-Encoding: chunked\r\n\r\n`)
    for (let i = 0; i < 9; i++) client.send('100000\r\n').send(Buffer.alloc(1_048_576)).send('\r\n')
    await client.heard('x-pen-denied')
    expect(client.text).toContain('not-signed')
    expect(serverOf(OTHER).text).toBe('')
  })

  test('signs the host and every x-amz- field, whatever the client listed', async () => {
    await start()
    const fields = [signature({ signed: 'x-amz-date' }), DATE, hash(), 'X-Amz-Acl: private', 'X-Other: 1']
    expect(await ask(S3, s3(fields))).toEndWith('ok')
    expect(judge(S3)).toBeUndefined()
    expect(serverOf(S3).text).toContain(
      'SignedHeaders=host;x-amz-acl;x-amz-content-sha256;x-amz-date;x-amz-security-token,',
    )
  })

  test('an answer keeps its encoding: no server has the key to repeat', async () => {
    await start()
    serverOf(S3).behave = serveHttp(answer('ok', 'Content-Encoding: gzip\r\n'))
    expect(await ask(S3, s3([signature(), DATE, hash(), 'Accept-Encoding: gzip']))).toContain('gzip')
    expect(serverOf(S3).text).toContain('Accept-Encoding: gzip')
  })

  test('stops when the secret is removed', async () => {
    await start()
    world.policy = policyOf({ allow: [`GET ${S3}/**`] })
    expect(await ask(S3, s3([signature(), DATE, hash()]))).toContain('x-pen-denied: secret-removed')
  })
})

describe('not signed, and nothing is sent', () => {
  const OK = [signature(), DATE, hash()]
  const refusals: Readonly<Record<string, readonly [request: string, reason: string]>> = {
    'two signatures': [s3([...OK, signature()]), 'not-signed'],
    'a second signature of another key': [
      s3([...OK, signature({ id: 'AKIAOTHEROTHER000000' })]),
      'not-signed',
    ],
    'a second signature in the query': [s3(OK, 'GET /x?a=b&X-Amz-Signature=00'), 'not-signed'],
    'a second credential in the query, in other case': [s3(OK, 'GET /x?x-amz-credential=y'), 'not-signed'],
    'a second signature in the query, encoded': [s3(OK, 'GET /x?%58-Amz-Signature=00'), 'not-signed'],
    'a presigned URL': [
      s3(
        ['X: y'],
        `GET /x?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${FAKE.id}%2F20150830&X-Amz-Signature=0`,
      ),
      'not-signed',
    ],
    'a signature of version 2': [s3([`Authorization: AWS ${FAKE.id}:c2lnbmF0dXJl`]), 'not-signed'],
    'the placeholder beside another id': [s3([signature({ id: `X${FAKE.id}` }), DATE]), 'not-signed'],
    'a scope with a slash too many': [s3([signature({ scope: `${scope()}/x` }), DATE]), 'not-signed'],
    'a scope of another service': [s3([signature({ scope: scope('sts') }), DATE, hash()]), 'not-signed'],
    'a scope of another region': [
      s3([signature({ scope: scope('s3', 'eu-west-1') }), DATE, hash()]),
      'not-signed',
    ],
    'two hashes': [s3([...OK, hash('UNSIGNED-PAYLOAD')]), 'not-signed'],
    'signed chunks': [s3([signature(), DATE, hash('STREAMING-AWS4-HMAC-SHA256-PAYLOAD')]), 'not-signed'],
    'a hash of another kind': [s3([signature(), DATE, hash('x')]), 'not-signed'],
    'doubled slashes': [s3(OK, 'GET /bucket//key'), 'not-signed'],
    'a dot segment': [s3(OK, 'GET /bucket/../key'), 'bad-request'],
    'the key id in another field': [s3([...OK, `X-Note: ${FAKE.id}`]), 'secret-misplaced'],
    'the key in another field': [s3([...OK, `X-Note: ${FAKE.key}`]), 'secret-misplaced'],
    'the token without a signature': [s3([`X-Amz-Security-Token: ${FAKE.token}`]), 'secret-misplaced'],
    'the key id in the path': [s3(OK, `GET /${FAKE.id}`), 'not-signed'],
  }
  for (const [what, [request, reason]] of Object.entries(refusals))
    test(what, async () => {
      await start()
      expect(await ask(S3, request)).toContain(`x-pen-denied: ${reason}`)
      expect(serverOf(S3).text).toBe('')
    })

  test('to another host, in any field', async () => {
    await start()
    for (const field of [signature(), `X-Key: ${FAKE.key}`, `X-Amz-Security-Token: ${FAKE.token}`]) {
      const client = await world.byName('evil.test', 80)
      await client.send(`GET / HTTP/1.1\r\nHost: evil.test\r\n${field}\r\n\r\n`).over()
      expect(client.text).toContain('x-pen-denied: secret-elsewhere')
    }
    expect(world.evil.text).toBe('')
  })

  const FORM = 'Content-Type: application/x-www-form-urlencoded; charset=utf-8'
  const other = (line: string, body = '', more = FORM, service = 's3') =>
    `${line} HTTP/1.1\r\nHost: ${OTHER}\r\n${signature({ scope: scope(service) })}\r\n${DATE}\r\n${more}\r\nContent-Length: ${body.length}\r\n\r\n${body}`

  test('calls that return credentials, under any service at a server that is not Amazon’s', async () => {
    await start()
    expect(await ask(OTHER, other('POST /', 'Action=ListRoles&Version=1'))).toContain('ok')
    expect(judge(OTHER)).toBeUndefined()
    const allowed = other(
      'PUT /bucket/AssumeRole.txt?x=AssumeRole',
      'Action=AssumeRole',
      hash('UNSIGNED-PAYLOAD'),
    )
    expect(await ask(OTHER, allowed)).toContain('ok')
    const before = serverOf(OTHER).text
    for (const request of [
      other('POST /', 'Action=AssumeRole&RoleArn=x'),
      other('POST /', 'Version=1&%41ction=GetSessionToken'),
      other('POST /', 'Action=AssumeRoleWithWebIdentity', `${FORM}\r\n${hash('UNSIGNED-PAYLOAD')}`),
      other('GET /?Action=GetFederationToken', '', 'X: y'),
      other('POST /', 'Action=CreateAccessKey', FORM.replace('Content-Type', 'content_type'), 'iam'),
      other(
        'POST /',
        '{}',
        'X-Amz-Target: AWSCognitoIdentityService.GetCredentialsForIdentity',
        'cognito-identity',
      ),
      other('POST /service/x/operation/AssumeRole', '', 'X: y'),
      other('POST /service/x/operation/AssumeRole/', '', 'X: y'),
      other('POST /', '{}', 'X-Amz-Target: AssumeRole'),
      other('POST /', '--x\r\n', 'Content-Type: multipart/form-data; boundary=x'),
    ])
      expect(await ask(OTHER, request)).toContain('x-pen-denied: not-signed')
    expect(serverOf(OTHER).text).toBe(before)
    const parts = [
      signature(),
      DATE,
      hash('UNSIGNED-PAYLOAD'),
      'Content-Type: multipart/form-data; boundary=x',
    ]
    expect(await ask(S3, s3(parts, 'POST /bucket', '--x'))).toContain('ok')
  })

  const sts = (line: string, body = '', more = '') =>
    `${line} HTTP/1.1\r\nHost: ${STS}\r\n${signature({ scope: scope('sts', 'eu-central-1') })}\r\n${DATE}\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`

  test('calls of STS that return credentials; its other calls are signed', async () => {
    await start()
    expect(await ask(STS, sts('POST /', 'Action=GetCallerIdentity&Version=2011-06-15'))).toContain('ok')
    expect(judge(STS)).toBeUndefined()
    const form = 'Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n'
    expect(await ask(STS, sts('POST /', 'Action=GetCallerIdentity', form))).toContain('ok')
    const before = serverOf(STS).text
    for (const request of [
      sts('POST /', 'Action=AssumeRole&RoleArn=x'),
      sts('POST /', 'Action=GetCallerIdentity&Action=GetSessionToken'),
      sts('POST /', 'Action=GetCallerIdentity&%41ction=GetSessionToken'),
      sts('POST /?Action=GetSessionToken', 'Action=GetCallerIdentity'),
      sts('GET /?Action=GetFederationToken'),
      sts('POST /', '{"Action":"GetCallerIdentity"}'),
      sts('POST /service/x/operation/AssumeRole', 'Action=GetCallerIdentity'),
      sts('POST /', 'Action=GetSessionToken', `${hash(sha256('Action=GetSessionToken'))}\r\n`),
      sts('POST /'),
      sts(
        'POST /?Action=GetCallerIdentity',
        '{}',
        'X-Amz-Target: AWSSecurityTokenServiceV20110615.AssumeRole\r\n',
      ),
      sts('POST /?Action=GetCallerIdentity', '{}', 'Content-Type: application/x-amz-json-1.0\r\n'),
      sts('POST /?Action=GetCallerIdentity', 'x', form.replace('utf-8', 'utf-16')),
      sts('POST /?Action=GetCallerIdentity', 'x', 'Content-Encoding: gzip\r\n'),
    ])
      expect(await ask(STS, request)).toContain('x-pen-denied: not-signed')
    expect(serverOf(STS).text).toBe(before)
  })
})
