/** Signatures of SSH servers. The key and the signature come from the sandbox: they are hostile until they fit. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { PacketReader } from '../protocol/ssh-packets.ts'

const CURVES: Readonly<
  Record<string, { readonly crv: string; readonly size: number; readonly hash: string }>
> = {
  'ecdsa-sha2-nistp256': { crv: 'P-256', size: 32, hash: 'sha256' },
  'ecdsa-sha2-nistp384': { crv: 'P-384', size: 48, hash: 'sha384' },
  'ecdsa-sha2-nistp521': { crv: 'P-521', size: 66, hash: 'sha512' },
}
/** SHA-1 (`ssh-rsa`) is not among them. */
const RSA_HASHES: Readonly<Record<string, string>> = { 'rsa-sha2-256': 'sha256', 'rsa-sha2-512': 'sha512' }

/** Whether the server with this key has signed these bytes. False for kinds of keys that are not known here. */
export function isSignedBy(hostKey: Buffer, signature: Buffer, bytes: Buffer): boolean {
  try {
    const key = new PacketReader(hostKey)
    const given = new PacketReader(signature)
    const [kind, algorithm, value] = [key.text(), given.text(), given.bytes()]
    const curve = CURVES[kind]
    if (kind === 'ssh-ed25519' && algorithm === kind)
      return verify(null, bytes, ofJwk({ kty: 'OKP', crv: 'Ed25519', x: url(key.bytes()) }), value)
    if (kind === 'ssh-rsa') {
      const [e, n] = [unsigned(key.bytes()), unsigned(key.bytes())]
      const hash = RSA_HASHES[algorithm]
      return hash !== undefined && verify(hash, bytes, ofJwk({ kty: 'RSA', e: url(e), n: url(n) }), value)
    }
    if (curve === undefined || algorithm !== kind) return false
    key.text()
    const point = key.bytes()
    const { crv, size, hash } = curve
    if (point.length !== 1 + 2 * size || point[0] !== 4) return false
    const [x, y] = [point.subarray(1, 1 + size), point.subarray(1 + size)]
    const pair = new PacketReader(value)
    const raw = Buffer.concat([padded(pair.bytes(), size), padded(pair.bytes(), size)])
    const own = { key: ofJwk({ kty: 'EC', crv, x: url(x), y: url(y) }), dsaEncoding: 'ieee-p1363' } as const
    return verify(hash, bytes, own, raw)
  } catch {
    // Malformed.
    return false
  }
}

const ofJwk = (key: Record<string, string>): KeyObject => createPublicKey({ key, format: 'jwk' })

const url = (bytes: Buffer): string => bytes.toString('base64url')

/** Without the zero that keeps a number positive. */
const unsigned = (bytes: Buffer): Buffer => (bytes[0] === 0 ? bytes.subarray(1) : bytes)

function padded(number: Buffer, size: number): Buffer {
  const bytes = unsigned(number)
  if (bytes.length > size) throw new RangeError('a number that is too long')
  return Buffer.concat([Buffer.alloc(size - bytes.length), bytes])
}
