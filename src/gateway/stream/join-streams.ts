/** Joins two streams until both are closed. Passes on a half close in its direction, and a reset as a reset. */
import type { EndReason } from '../route.ts'
import type { ByteStream } from './byte-stream.ts'

export function joinStreams(client: ByteStream, upstream: ByteStream): Promise<EndReason> {
  return new Promise(resolve => {
    let first: EndReason | undefined
    const whenClosed =
      (side: ByteStream, other: ByteStream, reason: EndReason, before: (() => void) | undefined) => () => {
        before?.()
        first ??= reason
        if (side.broken) other.reset()
        // The other side may be paused. It resumes so that its end is seen.
        else other.socket.resume()
        if (other.closed) resolve(first)
      }
    client.onClose = whenClosed(client, upstream, 'client', client.onClose)
    upstream.onClose = whenClosed(upstream, client, 'upstream', upstream.onClose)
    client.onEnd = () => {
      first ??= 'client'
    }
    upstream.onEnd = () => {
      first ??= 'upstream'
    }
    if (client.ended) first = 'client'
    client.pipeTo(upstream)
    upstream.pipeTo(client)
    if (client.closed) client.onClose()
    if (upstream.closed) upstream.onClose()
  })
}
