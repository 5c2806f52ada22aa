/** Files that the user granted while the sandbox runs. They are not mounted, and the broker serves them. */
import type { ContentOrder, PlainFileOrder, SearchOrder } from '../protocol/file-order.ts'
import { BROKER_SOCKET } from '../protocol/guest-paths.ts'
import { BrokerClient, FileRefused } from './broker-client.ts'

export interface Streams {
  readonly write: (bytes: Uint8Array) => void
  readonly say: (value: object) => void
  readonly input: () => AsyncIterable<Uint8Array>
}

/** False when no grant covers the path. The caller then uses the sandbox's own files. */
export async function throughBroker(order: PlainFileOrder | SearchOrder, streams: Streams): Promise<boolean> {
  if (order.op === 'search' || order.op === 'delete') return false
  const client = await BrokerClient.connect(BROKER_SOCKET)
  if (client === undefined) return false
  try {
    const { path } = order
    const places = await client.grants()
    if (!places.some(place => path === place.path || path.startsWith(`${place.path}/`))) return false
    await serve(client, order, streams)
    return true
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error
    throw Object.assign(new Error(error.message), { code: ERRNOS[error.refusal.reason] ?? 'EACCES' })
  } finally {
    client.close()
  }
}

async function serve(
  client: BrokerClient,
  order: ContentOrder,
  { write, say, input }: Streams,
): Promise<void> {
  const { path } = order
  switch (order.op) {
    case 'read':
      await client.read(path, () => write, { from: order.from, length: order.length })
      break
    case 'write':
      await client.write(path, input(), order.executable)
      break
    case 'list': {
      let said = 0
      for (let from: number | null = 0; from !== null; ) {
        const page = await client.list(path, from)
        for (const { name, kind } of page.entries) if (said++ < order.most) say({ name, kind, size: null })
        from = page.next
      }
      if (said > order.most) say({ more: said - order.most })
      break
    }
  }
}

const ERRNOS: Readonly<Record<string, string>> = { absent: 'ENOENT', directory: 'EISDIR' }
