/** Joins two ends until both are closed. Goodbyes pass through one direction at a time; a reset is passed on as a reset. */
import type { ByteStream } from './byte-stream.ts'
import type { EndReason } from './route.ts'

export function joinStreams(client: ByteStream, upstream: ByteStream): Promise<EndReason> {
  return new Promise(resolve => {
    let first: EndReason | undefined
    const whenClosed =
      (side: ByteStream, other: ByteStream, reason: EndReason, before: (() => void) | undefined) => () => {
        before?.()
        first ??= reason
        if (side.broken) other.reset()
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
