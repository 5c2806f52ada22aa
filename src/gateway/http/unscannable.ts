/** Answers that cannot be searched for the value of a secret. The gateway refuses them. */
import type { AnswerScan } from '../secrets/answer-scan.ts'
import { type Field, listOf } from './field.ts'

interface AnswerHead {
  readonly status: number
  readonly fields: readonly Field[]
  readonly hasBody: boolean
}

/** Compression of the body, of messages in gRPC and of messages in Connect. */
const CODINGS = ['content-encoding', 'grpc-encoding', 'connect-content-encoding']

export function whyUnscannable(
  scan: AnswerScan,
  { status, fields, hasBody }: AnswerHead,
): string | undefined {
  if (fields.some(({ name }) => scan.isInName(name)))
    return 'the answer has the secret in the name of a field'
  // The gateway removed the client's offer.
  if (status === 101 && fields.some(({ key }) => key === 'sec-websocket-extensions')) return COMPRESSED
  if (!hasBody) return undefined
  if (CODINGS.some(key => listOf(fields, key).some(coding => coding !== 'identity'))) return COMPRESSED
  // Each part could hold a part of the value.
  if (status === 206 || status === 226 || fields.some(({ key }) => key === 'content-range'))
    return 'the answer is a part, and pen cannot search it for the secret'
  return undefined
}

const COMPRESSED = 'the answer is compressed, and pen cannot search it for the secret'
