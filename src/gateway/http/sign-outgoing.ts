/** Signs a request for AWS, after the verdict and the record. A body without a hash is held until it is complete. */
import { badRequest, type Refusal } from '../refusal.ts'
import { type AwsSigning, notSigned, refuseMinting } from '../secrets/aws-request.ts'
import { sha256, signAws } from '../secrets/aws-signature.ts'
import type { Session } from '../session.ts'
import { endToEnd } from './field.ts'
import type { Forwarding } from './forward.ts'
import { holdBody } from './held-body.ts'

interface Signed {
  readonly forwarding: Forwarding
  /** The request is sent. */
  readonly release?: () => void
}

/** Undefined when the client broke off. */
export async function signOutgoing(
  session: Session,
  forwarding: Forwarding,
  sign: AwsSigning,
): Promise<Signed | Refusal | undefined> {
  const { request, path, host, body } = forwarding
  const held = sign.holds ? await holdBody(session, forwarding, session.shared.limits.maxHeldBody) : undefined
  if (sign.holds && held === undefined) {
    if (body.state === 'broken') return undefined
    return body.state === 'malformed'
      ? badRequest(body.why)
      : notSigned('a form of more than 8 MiB, or such a body without a hash', 'send x-amz-content-sha256')
  }
  const refusal = refuseMinting(sign, path, held?.bytes ?? new Uint8Array())
  if (refusal !== undefined) {
    held?.release()
    return refusal
  }
  // pen has answered 100-continue itself.
  const fields = endToEnd(request.fields).filter(({ key }) => held === undefined || key !== 'expect')
  const closes = request.fields.filter(({ key, value }) => key === 'connection' && /^close$/i.test(value))
  const signed = signAws(sign.credentials, sign.scope, {
    method: request.method,
    target: path,
    host,
    fields,
    signed: sign.signed,
    payload: sign.payload ?? sha256(held?.bytes ?? ''),
  })
  return {
    forwarding: {
      ...forwarding,
      request: { ...request, fields: [...signed, ...closes] },
      ...(held !== undefined && { firstPiece: held.bytes.length === 0 ? undefined : held.bytes }),
    },
    ...(held !== undefined && { release: held.release }),
  }
}
