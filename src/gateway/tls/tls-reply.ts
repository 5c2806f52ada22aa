/**
 * A refusal inside TLS, for programs that trust the project's authority. npm retries a TLS error for a minute, and an
 * agent cannot read an alert. Both understand a 403 with a text.
 */
import { parseHost } from '../../policy/network/host.ts'
import { awaitHeadEnd } from '../http/field.ts'
import type { Session } from '../session.ts'
import { readClientHello } from './client-hello.ts'
import { startTls } from './start-tls.ts'

/** False when an alert is the only way: without the authority, or without a server name that can be read. */
export async function replyInTls(
  { client, shared }: Pick<Session, 'client' | 'shared'>,
  page: (isHead: boolean) => string,
): Promise<boolean> {
  const { authority, limits } = shared
  if (authority === undefined) return false
  const hello = await client.readUntil(held => {
    const reading = readClientHello(held, limits.maxHello)
    return reading.kind === 'more' ? undefined : reading
  }, limits.denyWithinMs)
  // The name is hostile. It is only put into a certificate, and nothing is dialled.
  const name = hello?.kind === 'hello' ? parseHost(hello.serverName ?? '') : undefined
  if (name?.ok !== true) return false
  const leaf = authority.leafFor(name.value)
  const side = { isServer: true, read: client.consume(client.held.length), ...leaf } as const
  const failure = await startTls(client, side, limits.lingerMs)
  const head =
    failure === undefined ? await awaitHeadEnd(client, limits.maxRequestHead, limits.lingerMs) : undefined
  if (head === undefined) client.reset()
  else client.finish(page(client.held.toString('latin1', 0, 5) === 'HEAD '), limits.lingerMs)
  return true
}
