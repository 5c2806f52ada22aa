/** Joins two ends until both are closed. Goodbyes pass through one direction at a time; a reset is passed on as a reset. */
import type { EndReason } from '../route.ts'
import type { ByteStream } from '../stream/byte-stream.ts'

export function joinStreams(client: ByteStream, upstream: ByteStream): Promise<EndReason> {
  return new Promise(resolve => {
    let first: EndReason | undefined
    const whenClosed =
      (side: ByteStream, other: ByteStream, reason: EndReason, before: (() => void) | undefined) => () => {
        before?.()
        first ??= reason
        if (side.broken) other.reset()
        // It may have waited for this one to read. Now nobody does, and its goodbye is all that is left to hear.
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
