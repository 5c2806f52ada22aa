import type { ByteStream } from '../stream/byte-stream.ts'
import { MAX_QUERY } from './message.ts'

const IDLE_MS = 10_000
const LIFE_MS = 60_000
const MAX_QUERIES = 1000
const MAX_UNSENT = 64 * 1024

/** Serves one DNS connection over TCP. Each query has a two-byte length. Invalid input closes the connection. */
export async function serveStream(
  client: ByteStream,
  answer: (query: Buffer) => Buffer | undefined,
): Promise<void> {
  const end = performance.now() + LIFE_MS
  const nextQuery = (held: Buffer): Buffer | 'invalid' | undefined => {
    if (held.length < 2) return undefined
    const length = held.readUInt16BE(0)
    if (length > MAX_QUERY) return 'invalid'
    return held.length < 2 + length ? undefined : client.consume(2 + length).subarray(2)
  }
  for (let queries = 0; queries < MAX_QUERIES; queries++) {
    const query = await client.readUntil(nextQuery, Math.min(IDLE_MS, end - performance.now()))
    const reply = query === undefined || query === 'invalid' ? undefined : answer(query)
    if (reply === undefined) break
    const framed = Buffer.allocUnsafe(2 + reply.length)
    framed.writeUInt16BE(reply.length, 0)
    reply.copy(framed, 2)
    void client.write(framed)
    // The client does not read its replies, which would fill pen's memory.
    if (client.socket.unsent > MAX_UNSENT) break
  }
  // After a half close, the last replies are still sent.
  if (client.ended) client.socket.end()
  else client.socket.destroy()
}
