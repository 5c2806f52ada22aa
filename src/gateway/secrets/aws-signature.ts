/**
 * Signs a request for AWS: Signature Version 4, as the guide for AWS APIs describes it. Everything that is signed here is
 * sent in the same form. Nothing of the client's own signature is used.
 */
import type { Field } from '../http/field.ts'

export interface AwsCredentials {
  readonly id: string
  readonly key: string
  readonly token: string | undefined
}

export interface AwsScope {
  readonly region: string
  readonly service: string
}

export interface Signable {
  readonly method: string
  /** As it is sent, with the query. */
  readonly target: string
  readonly host: string
  readonly fields: readonly Field[]
  /** Names of more fields to sign, in lower case. */
  readonly signed: ReadonlySet<string>
  /** The hash of the body, or a word in its place. */
  readonly payload: string
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

/** The fields to send: with the date, the token and the signature. */
export function signAws(
  { id, key, token }: AwsCredentials,
  scope: AwsScope,
  request: Signable,
  now = new Date(),
): Field[] {
  const date = now.toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
  const day = date.slice(0, 8)
  const sent = [
    ...request.fields,
    field('X-Amz-Date', date),
    ...(token === undefined ? [] : [field('X-Amz-Security-Token', token)]),
  ]
  const { text, names } = canonicalRequest(request, sent, scope)
  const within = `${day}/${scope.region}/${scope.service}/aws4_request`
  // One character is one byte, as it is sent.
  const toSign = `${ALGORITHM}\n${date}\n${within}\n${sha256(Buffer.from(text, 'latin1'))}`
  const steps = [day, scope.region, scope.service, 'aws4_request', toSign]
  const signature = steps.reduce<string | Buffer>((by, step) => hmac(by, step), `AWS4${key}`)
  const credential = `Credential=${id}/${within}, SignedHeaders=${names}`
  return [
    ...sent,
    field('Authorization', `${ALGORITHM} ${credential}, Signature=${(signature as Buffer).toString('hex')}`),
  ]
}

function canonicalRequest(
  { method, target, host, signed, payload }: Signable,
  sent: readonly Field[],
  { service }: AwsScope,
) {
  const mark = target.indexOf('?')
  const [path, query] = mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)]
  const values = new Map<string, string[]>([['host', [host]]])
  for (const { key, value } of sent)
    if (key !== 'host' && (key.startsWith('x-amz-') || signed.has(key)))
      values.set(key, [...(values.get(key) ?? []), value.trim().replaceAll(/ +/g, ' ')])
  const headers = [...values].sort(([a], [b]) => compare(a, b))
  const names = headers.map(([name]) => name).join(';')
  const lines = headers.map(([name, all]) => `${name}:${all.join(',')}\n`).join('')
  const text = [method, canonicalPath(path, service), canonicalQuery(query), lines, names, payload].join('\n')
  return { text, names }
}

/** S3 encodes a path once. All other services encode the path that is sent once more. */
const canonicalPath = (path: string, service: string): string =>
  path
    .split('/')
    .map(segment => encode(service.startsWith('s3') ? bytesOf(segment) : Buffer.from(segment, 'latin1')))
    .join('/')

const canonicalQuery = (query: string): string =>
  query
    .split('&')
    .filter(pair => pair !== '')
    .map(pair => {
      const [name = '', ...value] = pair.split('=')
      return [encode(bytesOf(name)), encode(bytesOf(value.join('=')))] as const
    })
    .sort(([a, x], [b, y]) => compare(a, b) || compare(x, y))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')

/** Percent-decoded. */
const bytesOf = (text: string): Buffer =>
  Buffer.from(
    text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    ),
    'latin1',
  )

function encode(bytes: Buffer): string {
  let out = ''
  for (const byte of bytes) {
    const character = String.fromCharCode(byte)
    out += /[A-Za-z0-9._~-]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return out
}

/** By code point, whatever the language of the user. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const field = (name: string, value: string): Field => ({ name, key: name.toLowerCase(), value })

export const sha256 = (data: string | Uint8Array): string =>
  new Bun.CryptoHasher('sha256').update(data).digest('hex')

const hmac = (key: string | Buffer, text: string): Buffer =>
  new Bun.CryptoHasher('sha256', key).update(text).digest()
