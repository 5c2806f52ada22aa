/** Begins TLS on a connection that the gateway made or accepted, within a time. */
import type { ByteStream } from '../stream/byte-stream.ts'
import type { TlsSide } from '../stream/stream-socket.ts'

/** Undefined when the handshake is done. `certificate`: the server is not who it should be. The caller closes the stream. */
export async function startTls(
  { socket }: ByteStream,
  side: TlsSide,
  ms: number,
): Promise<undefined | 'certificate' | 'incomplete'> {
  const timer = setTimeout(() => socket.destroy(), ms)
  const error = await socket.startTls(side)
  clearTimeout(timer)
  if (error === undefined) return undefined
  return error instanceof Error && 'code' in error && ABOUT_CERTIFICATE.test(String(error.code))
    ? 'certificate'
    : 'incomplete'
}

const ABOUT_CERTIFICATE = /CERT|UNABLE_TO|SELF_SIGNED|HOSTNAME|ALTNAME/
