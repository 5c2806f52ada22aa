import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type SignedRequest, whyUnsigned } from '../../../test/gateway/aws-verifier.ts'
import { sha256, signAws } from './aws-signature.ts'

/** The keys of AWS's own examples: its test suite, and the pages of S3. */
const SUITE = { id: 'AKIDEXAMPLE', key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', token: undefined }
const S3 = { id: 'AKIAIOSFODNN7EXAMPLE', key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', token: undefined }
const IN_2015 = new Date('2015-08-30T12:36:00Z')
const IN_2013 = new Date('2013-05-24T00:00:00Z')
const EMPTY = sha256('')
const hashed = (payload: string) => ['X-Amz-Content-Sha256', payload] as const

type Example = readonly [
  what: string,
  line: string,
  headers: readonly (readonly [string, string])[],
  scope: string,
  body: string,
  signature: string,
]

const EXAMPLES: readonly Example[] = [
  [
    'get-vanilla',
    'GET /',
    [],
    'service',
    '',
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  ],
  [
    'post-vanilla',
    'POST /',
    [],
    'service',
    '',
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  ],
  [
    'get-vanilla-query-order-key-case',
    'GET /?Param2=value2&Param1=value1',
    [],
    'service',
    '',
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  [
    'the example of IAM',
    'GET /?Action=ListUsers&Version=2010-05-08',
    [['Content-Type', 'application/x-www-form-urlencoded; charset=utf-8']],
    'iam',
    '',
    '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
  ],
  [
    'a part of an object of S3',
    'GET /test.txt',
    [['Range', 'bytes=0-9'], hashed(EMPTY)],
    's3',
    '',
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ],
  [
    'an upload to S3',
    'PUT /test%24file.text',
    [
      ['Date', 'Fri, 24 May 2013 00:00:00 GMT'],
      ['X-Amz-Storage-Class', 'REDUCED_REDUNDANCY'],
      hashed(sha256('Welcome to Amazon S3.')),
    ],
    's3',
    'Welcome to Amazon S3.',
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ],
  [
    'the lifecycle of a bucket',
    'GET /?lifecycle',
    [hashed(EMPTY)],
    's3',
    '',
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  ],
  [
    'the list of a bucket',
    'GET /?max-keys=2&prefix=J',
    [hashed(EMPTY)],
    's3',
    '',
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ],
]

const HOSTS: Readonly<Record<string, string>> = {
  s3: 'examplebucket.s3.amazonaws.com',
  iam: 'iam.amazonaws.com',
  service: 'example.amazonaws.com',
}

function sign(
  line: string,
  headers: readonly (readonly [string, string])[],
  service: string,
  body: string,
): SignedRequest {
  const [method = '', url = ''] = line.split(' ')
  const fields = headers.map(([name, value]) => ({ name, key: name.toLowerCase(), value }))
  const host = HOSTS[service] ?? 'allowed.test'
  const signed = new Set(fields.map(({ key }) => key))
  const request = { method, target: url, host, fields, signed, payload: sha256(body) }
  const [keys, at] = service === 's3' ? [S3, IN_2013] : [SUITE, IN_2015]
  const sent = signAws(keys, { region: 'us-east-1', service }, request, at)
  return {
    method,
    url,
    body,
    headers: [['Host', host], ...sent.map(({ name, value }) => [name, value] as const)],
  }
}

describe('a signature', () => {
  for (const [what, line, headers, service, body, signature] of EXAMPLES)
    test(`of ${what} is the one that AWS publishes, and the verifier agrees`, () => {
      const request = sign(line, headers, service, body)
      expect(request.headers.at(-1)?.[1]).toEndWith(`Signature=${signature}`)
      const [keys, at] = service === 's3' ? [S3, IN_2013] : [SUITE, IN_2015]
      expect(whyUnsigned(request, keys, at)).toBeUndefined()
      expect(whyUnsigned({ ...request, url: '/other' }, keys, at)).toBe('SignatureDoesNotMatch')
      expect(whyUnsigned(request, { ...keys, key: 'other' }, at)).toBe('SignatureDoesNotMatch')
    })

  test('of any request is one that the verifier accepts', () => {
    const text = fc.stringMatching(/^[A-Za-z0-9._~!$&'()*+,;=:@ %-]{0,12}$/)
    const part = text.map(encodeURIComponent)
    const pair = fc.tuple(part, part).map(([name, value]) => `${name}=${value}`)
    fc.assert(
      fc.property(
        fc.array(part),
        fc.array(pair, { maxLength: 4 }),
        fc.constantFrom('s3', 'service'),
        text,
        text,
        (parts, query, service, value, body) => {
          const line = `PUT /${parts.join('/')}${query.length === 0 ? '' : `?${query.join('&')}`}`
          const request = sign(
            line,
            [
              ['X-Amz-Meta', value],
              ['x-amz-meta', 'two'],
            ],
            service,
            body,
          )
          const [keys, at] = service === 's3' ? [S3, IN_2013] : [SUITE, IN_2015]
          expect(whyUnsigned(request, keys, at)).toBeUndefined()
        },
      ),
    )
  })
})
