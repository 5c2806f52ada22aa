/**
 * Makes X.509 certificates for P-256 keys, in DER by hand: libraries for it take longer to load than a sandbox to start.
 * Serial, key ids, key usage and names follow RFC 5280, so that OpenSSL, GnuTLS, Go, Java and NSS accept them.
 */
import type { KeyObject } from 'node:crypto'

export interface CertificateRequest {
  readonly subject: string
  readonly key: KeyObject
  readonly issuer: { readonly name: string; readonly publicKey: KeyObject; readonly privateKey: KeyObject }
  readonly from: Date
  readonly to: Date
  /** The DNS name of a server. Undefined for an authority. */
  readonly host: string | undefined
}

export function makeCertificate({ subject, key, issuer, from, to, host }: CertificateRequest): string {
  const { randomBytes, sign } = process.getBuiltinModule('node:crypto')
  const serial = randomBytes(16)
  // A positive number without leading zeros.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
  const kind =
    host === undefined
      ? [
          extension(BASIC_CONSTRAINTS, true, sequence(TRUE, integer(0))),
          extension(KEY_USAGE, true, tlv(3, Buffer.from([1, 0x06]))),
        ]
      : [
          extension(BASIC_CONSTRAINTS, true, sequence()),
          extension(KEY_USAGE, true, tlv(3, Buffer.from([7, 0x80]))),
          extension(EXTENDED_KEY_USAGE, false, sequence(objectId(SERVER_AUTH))),
          extension(ALTERNATIVE_NAME, false, sequence(tlv(0x82, Buffer.from(host)))),
        ]
  const signed = sequence(
    tlv(0xa0, integer(2)),
    tlv(2, serial),
    ECDSA_WITH_SHA256,
    nameOf(issuer.name),
    sequence(timeOf(from), timeOf(to)),
    nameOf(subject),
    encoded(key),
    tlv(
      0xa3,
      sequence(
        ...kind,
        extension(SUBJECT_KEY_ID, false, tlv(4, keyId(key))),
        extension(AUTHORITY_KEY_ID, false, sequence(tlv(0x80, keyId(issuer.publicKey)))),
      ),
    ),
  )
  const signature = sign('sha256', signed, issuer.privateKey)
  return pem(sequence(signed, ECDSA_WITH_SHA256, tlv(3, Buffer.from([0]), signature)))
}

/** A type, a length, a value. */
function tlv(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  const { length } = body
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), body])
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => tlv(0x30, ...parts)
const integer = (value: number): Buffer => tlv(2, Buffer.from([value]))
const objectId = (hex: string): Buffer => tlv(6, Buffer.from(hex, 'hex'))
const TRUE = tlv(1, Buffer.from([0xff]))

const extension = (id: string, isCritical: boolean, value: Uint8Array): Buffer =>
  sequence(objectId(id), ...(isCritical ? [TRUE] : []), tlv(4, value))

const BASIC_CONSTRAINTS = '551d13'
const KEY_USAGE = '551d0f'
const EXTENDED_KEY_USAGE = '551d25'
const ALTERNATIVE_NAME = '551d11'
const SUBJECT_KEY_ID = '551d0e'
const AUTHORITY_KEY_ID = '551d23'
const SERVER_AUTH = '2b06010505070301'
const COMMON_NAME = '550403'
const ECDSA_WITH_SHA256 = sequence(objectId('2a8648ce3d040302'))

/** A common name has at most 64 characters. Clients read the alternative name instead. */
const nameOf = (text: string): Buffer =>
  sequence(tlv(0x31, sequence(objectId(COMMON_NAME), tlv(0x0c, Buffer.from(text.slice(0, 64))))))

/** UTCTime until 2049. */
function timeOf(date: Date): Buffer {
  const text = `${date.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`
  return date.getUTCFullYear() < 2050 ? tlv(0x17, Buffer.from(text.slice(2))) : tlv(0x18, Buffer.from(text))
}

const encoded = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })

/** Of a P-256 key in SPKI, the last 65 bytes are the point. */
const keyId = (key: KeyObject): Buffer =>
  new Bun.CryptoHasher('sha1').update(encoded(key).subarray(-65)).digest()

const pem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der
    .toString('base64')
    .replaceAll(/.{64}/g, '$&\n')
    .trimEnd()}\n-----END CERTIFICATE-----\n`
