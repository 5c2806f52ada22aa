/** Holds the whole body of a request, for a step that must see it before the head is sent. All held bodies count together. */
import type { Session } from '../session.ts'
import type { Forwarding } from './forward.ts'

export interface HeldBody {
  readonly bytes: Buffer
  /** The bytes no longer count as held. */
  readonly release: () => void
}

/** Undefined when the body is longer than `most`, or breaks off: then see `body.state`. */
export async function holdBody(
  session: Session,
  { request, body, firstPiece }: Pick<Forwarding, 'request' | 'body' | 'firstPiece'>,
  most: number,
): Promise<HeldBody | undefined> {
  const { client, shared } = session
  let buffered = firstPiece?.length ?? 0
  const owner = {
    get buffered(): number {
      return buffered
    },
    overrun: () => session.overrun(),
  }
  const release = (): void => {
    buffered = 0
  }
  const { framing } = request
  if (framing.kind === 'length' && framing.length > most) return undefined
  const waits = request.fields.some(({ key, value }) => key === 'expect' && /^100-continue$/i.test(value))
  if (waits && body.state === 'reading') await client.write('HTTP/1.1 100 Continue\r\n\r\n')
  const pieces = firstPiece === undefined ? [] : [Buffer.from(firstPiece)]
  for (let piece = await body.next(); piece !== undefined; piece = await body.next()) {
    buffered += piece.length
    if (buffered > most) {
      release()
      return undefined
    }
    pieces.push(Buffer.from(piece))
    shared.buffers.note(owner)
  }
  if (body.state === 'complete') return { bytes: Buffer.concat(pieces), release }
  release()
  return undefined
}
