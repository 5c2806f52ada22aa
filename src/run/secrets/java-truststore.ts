/**
 * Adds a certificate to a Java truststore in the JKS format, without keytool, which takes a second to start. The file is
 * a list of certificates with a digest at its end. Distributions use the well-known password.
 */
const MAGIC = 0xfeedfeed
const VERSION = 2
const TRUSTED = 2
const DIGEST_LENGTH = 20
const PASSWORD = 'changeit'

/** A new store of all certificates in a bundle. An image has one of its own, which pen cannot read before it runs. */
export function storeOf(bundle: string): Buffer {
  const pems = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const entries = pems.map((pem, i) => entryOf(`pen-${i}`, pem))
  const body = Buffer.concat([u32(MAGIC), u32(VERSION), u32(entries.length), ...entries])
  return Buffer.concat([body, digestOf(body)])
}

/** The certificate of a PEM text, in base64. */
export const derIn = (pem: string): string => pem.replaceAll(/-----[^-]+-----|\s/g, '')

/** Undefined for another format, such as PKCS #12. */
export function withCertificate(store: Buffer, alias: string, pem: string): Buffer | undefined {
  if (
    store.length < 12 + DIGEST_LENGTH ||
    store.readUInt32BE(0) !== MAGIC ||
    store.readUInt32BE(4) !== VERSION
  )
    return undefined
  const entries = store.subarray(12, -DIGEST_LENGTH)
  const added = entryOf(alias, pem)
  const body = Buffer.concat([store.subarray(0, 8), u32(store.readUInt32BE(8) + 1), entries, added])
  return Buffer.concat([body, digestOf(body)])
}

function entryOf(alias: string, pem: string): Buffer {
  const der = Buffer.from(derIn(pem), 'base64')
  return Buffer.concat([u32(TRUSTED), text(alias), Buffer.alloc(8), text('X.509'), u32(der.length), der])
}

/** In Java's own words. */
function digestOf(body: Buffer): Buffer {
  const password = Buffer.from(PASSWORD, 'utf16le').swap16()
  return new Bun.CryptoHasher('sha1').update(password).update('Mighty Aphrodite').update(body).digest()
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(bytes.length)
  return Buffer.concat([length, bytes])
}
