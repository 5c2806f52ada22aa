/** What a client wants to have signed. Only two kinds of data exist that pen can explain to the user. */
import { PacketReader } from '../protocol/ssh-packets.ts'

export type SignedData =
  /** A login (RFC 4252). `hostKey` is there where the client binds it to the server. */
  | { readonly kind: 'login'; readonly session: Buffer; readonly hostKey: Buffer | undefined }
  /** A signature by `ssh-keygen -Y`, as git makes it. */
  | { readonly kind: 'signature'; readonly namespace: string }

const USERAUTH_REQUEST = 50
const SIGNATURE_MAGIC = Buffer.from('SSHSIG')

/** Undefined for everything else, also for bytes after the end. `key` is the public key that would sign. */
export function readSignedData(data: Buffer, key: Buffer): SignedData | undefined {
  try {
    return data.subarray(0, SIGNATURE_MAGIC.length).equals(SIGNATURE_MAGIC)
      ? signature(data)
      : login(data, key)
  } catch {
    return undefined
  }
}

function signature(data: Buffer): SignedData | undefined {
  const reader = new PacketReader(data.subarray(SIGNATURE_MAGIC.length))
  const namespace = reader.text()
  // A reserved field, the hash's name, and the hash.
  for (let field = 0; field < 3; field++) reader.bytes()
  return reader.rest().length === 0 ? { kind: 'signature', namespace } : undefined
}

function login(data: Buffer, key: Buffer): SignedData | undefined {
  const reader = new PacketReader(data)
  const session = reader.bytes()
  if (reader.byte() !== USERAUTH_REQUEST) return undefined
  // The user's name at the server.
  reader.bytes()
  if (reader.text() !== 'ssh-connection') return undefined
  const method = reader.text()
  const isBound = method === 'publickey-hostbound-v00@openssh.com'
  if ((method !== 'publickey' && !isBound) || reader.byte() !== 1) return undefined
  // The algorithm.
  reader.bytes()
  if (!reader.bytes().equals(key)) return undefined
  const hostKey = isBound ? reader.bytes() : undefined
  return reader.rest().length === 0 ? { kind: 'login', session, hostKey } : undefined
}
