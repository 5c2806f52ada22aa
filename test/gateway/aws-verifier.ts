/**
 * Checks a signature of AWS as a server does, from AWS's description and without pen's signer: everything comes from the
 * request, and the key from the id in it.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/** The keys of AWS's published examples, with a token. */
export const EXAMPLE_KEYS = {
  id: 'AKIDEXAMPLE0EXAMPLE0',
  key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  token: 'IQoJb3JpZ2luX2VjEXAMPLETOKEN//////////EXAMPLE==',
}

export interface SignedRequest {
  readonly method: string
  /** The target, as sent. */
  readonly url: string
  /** Pairs of name and value, as sent. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | Buffer
}

export interface ServerKeys {
  readonly id: string
  readonly key: string
  readonly token?: string | undefined
}

/** Undefined when the signature is good. */
export function whyUnsigned(
  request: SignedRequest,
  keys: ServerKeys,
  now: Date = new Date(),
): string | undefined {
  const one = (name: string): string | undefined => {
    const found = request.headers.filter(([other]) => other.toLowerCase() === name)
    return found.length === 1 ? found[0]?.[1] : undefined
  }
  const authorization = one('authorization') ?? ''
  const word = (name: string): string => new RegExp(`${name}=([^, ]+)`).exec(authorization)?.[1] ?? ''
  if (!authorization.startsWith('AWS4-HMAC-SHA256 ')) return 'not one signature of version 4'
  const [id, day, region, service, end] = word('Credential').split('/')
  if (id !== keys.id || end !== 'aws4_request') return `unknown key ${id}`
  if (one('x-amz-security-token') !== keys.token) return 'another token'
  const date = one('x-amz-date') ?? ''
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? []
  const at = Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s))
  if (!(Math.abs(at - now.getTime()) < 900_000) || !date.startsWith(day ?? '-')) return `skewed date ${date}`
  const signed = word('SignedHeaders').split(';')
  if (!signed.includes('host')) return 'the host is not signed'
  const unsigned = request.headers.find(
    ([name]) => /^x-amz-/i.test(name) && !signed.includes(name.toLowerCase()),
  )
  if (unsigned !== undefined) return `${unsigned[0]} is not signed`

  const digest = createHash('sha256').update(request.body).digest('hex')
  const said = one('x-amz-content-sha256') ?? digest
  if (/^[0-9a-f]{64}$/.test(said) && said !== digest) return 'the body has another hash'
  const [path = '', ...rest] = request.url.split('?')
  const once = path.split('/').map(part => quote(decodeURIComponent(part)))
  const canonical = [
    request.method,
    service?.startsWith('s3') ? once.join('/') : path.split('/').map(quote).join('/'),
    queryOf(rest.join('?')),
    ...signed.map(name => {
      const values = request.headers
        .filter(([other]) => other.toLowerCase() === name)
        .map(([, value]) => value)
      return `${name}:${values.map(value => value.trim().split(/ +/).join(' ')).join(',')}`
    }),
    '',
    signed.join(';'),
    said,
  ].join('\n')
  const text = [
    'AWS4-HMAC-SHA256',
    date,
    `${day}/${region}/${service}/aws4_request`,
    createHash('sha256').update(canonical).digest('hex'),
  ].join('\n')
  const sign = (key: string | Buffer, message = ''): Buffer =>
    createHmac('sha256', key).update(message).digest()
  const key = sign(sign(sign(sign(`AWS4${keys.key}`, day), region), service), 'aws4_request')
  const expected = sign(key, text)
  const given = Buffer.from(word('Signature'), 'hex')
  return given.length === 32 && timingSafeEqual(given, expected) ? undefined : 'SignatureDoesNotMatch'
}

const quote = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, mark => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)

function queryOf(query: string): string {
  const pairs = query.split('&').filter(pair => pair !== '')
  return pairs
    .map(pair => {
      const [name = '', ...value] = pair.split('=')
      return [quote(decodeURIComponent(name)), quote(decodeURIComponent(value.join('=')))]
    })
    .sort((a, b) => (String(a[0]) === String(b[0]) ? before(a[1], b[1]) : before(a[0], b[0])))
    .map(pair => pair.join('='))
    .join('&')
}

const before = (a = '', b = ''): number => (a < b ? -1 : 1)
