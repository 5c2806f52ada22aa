/** A small S3 and STS that check each signature by themselves, and keep objects in memory. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { EXAMPLE_KEYS, whyUnsigned } from '../../gateway/aws-verifier.ts'

const objects = new Map<string, Buffer>()

const xml = (body: string): string => `<?xml version="1.0" encoding="UTF-8"?>\n${body}`
const error = (code: string): string =>
  xml(
    `<Error><Code>${code}</Code><Message>${code}</Message><AWSAccessKeyId>${EXAMPLE_KEYS.id}</AWSAccessKeyId></Error>`,
  )
const IDENTITY = xml(
  `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/example</Arn><UserId>AIDAEXAMPLE</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`,
)

export async function serveAws(
  request: IncomingMessage,
  response: ServerResponse,
  log: (line: string) => void,
): Promise<void> {
  const { method = '', url = '', headers, rawHeaders } = request
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  const body = Buffer.concat(pieces)
  const pairs = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? ''] as const] : [],
  )
  const why = whyUnsigned({ method, url, headers: pairs, body }, EXAMPLE_KEYS)
  log(`aws ${headers.host} ${method} ${why ?? 'signed'} ${body.length}`)
  if (why !== undefined) {
    response.writeHead(403, { 'content-type': 'application/xml' }).end(error('SignatureDoesNotMatch'))
    return
  }
  const name = `${headers.host}${url.split('?')[0]}`
  if (headers.host?.startsWith('sts.')) response.writeHead(200, { 'content-type': 'text/xml' }).end(IDENTITY)
  else if (method === 'PUT') {
    objects.set(name, body)
    response.writeHead(200, { etag: '"0"' }).end()
  } else serveObject(objects.get(name), request, response)
}

function serveObject(
  object: Buffer | undefined,
  { method, headers }: IncomingMessage,
  response: ServerResponse,
): void {
  if (object === undefined) {
    response
      .writeHead(404, { 'content-type': 'application/xml' })
      .end(method === 'HEAD' ? undefined : error('NoSuchKey'))
    return
  }
  const fields = { etag: '"0"', 'last-modified': 'Wed, 01 Jan 2025 00:00:00 GMT', 'accept-ranges': 'bytes' }
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? []
  if (from === undefined) {
    response
      .writeHead(200, { ...fields, 'content-length': object.length })
      .end(method === 'HEAD' ? undefined : object)
    return
  }
  const end = to === '' || to === undefined ? object.length : Number(to) + 1
  const part = object.subarray(Number(from), end)
  const range = `bytes ${from}-${Number(from) + part.length - 1}/${object.length}`
  response.writeHead(206, { ...fields, 'content-range': range, 'content-length': part.length }).end(part)
}
