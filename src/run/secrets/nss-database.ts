/**
 * A database of NSS that trusts one authority. Chromium and its headless shell read `~/.pki/nssdb`, and ignore the
 * system's bundle. NSS opens the database for writing, so the sandbox has a copy of its own.
 */
import { derIn } from './java-truststore.ts'

/** Attributes of PKCS #11 and of NSS, as NSS names its columns. */
const [CLASS, TOKEN, PRIVATE, LABEL, VALUE, TYPE] = ['a0', 'a1', 'a2', 'a3', 'a11', 'a80']
const [ISSUER, SERIAL, SUBJECT, ID] = ['a81', 'a82', 'a101', 'a102']
const [SERVER_AUTH, SHA1, MD5] = ['ace536358', 'ace5363b4', 'ace5363b5']

const [CERTIFICATE, TRUST] = ['00000001', 'ce534353']
const TRUSTED_AUTHORITY = 'ce534352'

/** The bytes of `cert9.db`. NSS makes `key4.db` itself. */
export function nssDatabase(pem: string): Buffer {
  const der = Buffer.from(derIn(pem), 'base64')
  const [, serial, , issuer, , subject] = partsOf(contentOf(partsOf(contentOf(der))[0]))
  const digest = (kind: 'sha1' | 'md5') => new Bun.CryptoHasher(kind).update(der).digest()
  const both = { [TOKEN]: '01', [PRIVATE]: '00', [ISSUER]: issuer, [SERIAL]: serial }
  const certificate = { [LABEL]: Buffer.from('pen'), [VALUE]: der, [TYPE]: '00000000' }
  const trust = { [SERVER_AUTH]: TRUSTED_AUTHORITY, [SHA1]: digest('sha1'), [MD5]: digest('md5') }
  const rows = [
    { [CLASS]: CERTIFICATE, ...both, ...certificate, [SUBJECT]: subject, [ID]: digest('sha1') },
    { [CLASS]: TRUST, ...both, ...trust },
  ]
  // Only the first start of a project needs it.
  const { Database } = process.getBuiltinModule('bun:sqlite') as typeof import('bun:sqlite')
  using database = new Database(':memory:')
  const columns = [...new Set(rows.flatMap(row => Object.keys(row)))]
  database.run(`CREATE TABLE nssPublic (id PRIMARY KEY UNIQUE ON CONFLICT ABORT, ${columns.join(', ')})`)
  for (const [i, row] of rows.entries()) {
    const values = Object.values(row).map(value =>
      typeof value === 'string' ? Buffer.from(value, 'hex') : value,
    )
    database
      .query(
        `INSERT INTO nssPublic (id, ${Object.keys(row).join(', ')}) VALUES (?${', ?'.repeat(values.length)})`,
      )
      .run(i + 1, ...(values as Buffer[]))
  }
  return database.serialize()
}

const NOTHING = Buffer.alloc(0)

/** The elements of a DER sequence. The certificate is pen's own. */
function partsOf(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + headerOf(bytes.subarray(at)) + lengthOf(bytes.subarray(at))
    parts.push(bytes.subarray(at, end))
    at = end
  }
  return parts
}

const contentOf = (element: Buffer = NOTHING): Buffer => element.subarray(headerOf(element))

const headerOf = (element: Buffer): number => ((element[1] ?? 0) < 0x80 ? 2 : 2 + ((element[1] ?? 0) & 0x7f))

const lengthOf = (element: Buffer): number =>
  headerOf(element) === 2 ? (element[1] ?? 0) : element.readUIntBE(2, headerOf(element) - 2)
