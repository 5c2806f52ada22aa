/**
 * The certificate authority of one project, and the certificates that it makes for opened hosts. Its key is in pen's
 * state, which no sandbox can read. A program that trusts it trusts the gateway of this project's sandboxes, and nothing
 * else has the key.
 */
import type { KeyObject } from 'node:crypto'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import type { Host } from '../../policy/network/host.ts'
import { makeCertificate } from './mint.ts'

const DAY_MS = 86_400_000
const AUTHORITY_DAYS = 365
/** A start with less time left makes a new authority, so that no sandbox outlives its own. */
const RENEW_DAYS = 90
const LEAF_DAYS = 7
/** A client's clock may be late. */
const SLACK_DAYS = 1
const MOST_LEAVES = 1024
const MAX_BYTES = 8192

export interface Leaf {
  readonly key: string
  readonly cert: string
}

interface Issuer {
  readonly name: string
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

/** A start needs only texts. `node:crypto` takes 4 ms to load, and is loaded for the first leaf. */
export class Authority {
  readonly name: string
  /** PEM. */
  readonly certificate: string
  readonly #privateKey: string
  /** One key for all leaves of this process. */
  #signing: { readonly issuer: Issuer; readonly key: NewKey } | undefined
  readonly #leaves = new Map<Host, { readonly leaf: Leaf; readonly renew: number }>()

  constructor(name: string, privateKey: string, certificate: string) {
    this.name = name
    this.certificate = certificate
    this.#privateKey = privateKey
  }

  /** Random bytes that only the owner of the key can compute, and always the same for one text. */
  randomFor(text: string): () => number {
    let block: Buffer = Buffer.alloc(0)
    let used = 0
    return () => {
      if (used % 32 === 0)
        block = new Bun.CryptoHasher('sha256', this.#privateKey).update(`${used} ${text}`).digest()
      return block[used++ % 32] ?? 0
    }
  }

  leafFor(name: Host, now = Date.now()): Leaf {
    const known = this.#leaves.get(name)
    if (known !== undefined && known.renew > now) return known.leaf
    this.#signing ??= { issuer: issuerOf(this.name, this.#privateKey), key: newKey() }
    const { issuer, key } = this.#signing
    const cert = makeCertificate({
      subject: name,
      key: key.publicKey,
      issuer,
      from: new Date(now - SLACK_DAYS * DAY_MS),
      to: new Date(now + LEAF_DAYS * DAY_MS),
      host: name,
    })
    const leaf = { key: key.text, cert }
    if (this.#leaves.size >= MOST_LEAVES) this.#leaves.clear()
    this.#leaves.set(name, { leaf, renew: now + (LEAF_DAYS * DAY_MS) / 2 })
    return leaf
  }
}

/** The file: the day of renewal, the key and the certificate. */
const FILE =
  /^renew ([0-9TZ:.-]{24})\n(-----BEGIN PRIVATE KEY-----\n.*?-----END PRIVATE KEY-----\n)(-----BEGIN CERT.*)$/s

/** Reads the authority of a project, or makes one. Two starts at the same time may make two: the last one stays. */
export function openAuthority(stateDir: string, sandbox: string, now = Date.now()): Authority {
  const file = `${stateDir}/authority.pem`
  const name = `pen sandbox ${sandbox}`.slice(0, 64)
  const text = readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })?.toString('latin1')
  const [, renew = '', key, certificate] = FILE.exec(text ?? '') ?? []
  if (key !== undefined && certificate !== undefined && new Date(renew).getTime() > now)
    return new Authority(name, key, certificate)
  const made = newKey()
  const own = makeCertificate({
    subject: name,
    key: made.publicKey,
    issuer: { name, publicKey: made.publicKey, privateKey: made.privateKey },
    from: new Date(now - SLACK_DAYS * DAY_MS),
    to: new Date(now + AUTHORITY_DAYS * DAY_MS),
    host: undefined,
  })
  const until = new Date(now + (AUTHORITY_DAYS - RENEW_DAYS) * DAY_MS)
  writeFileAtomically(file, `renew ${until.toISOString()}\n${made.text}${own}`)
  return new Authority(name, made.text, own)
}

function issuerOf(name: string, text: string): Issuer {
  const { createPrivateKey, createPublicKey } = process.getBuiltinModule('node:crypto')
  const privateKey = createPrivateKey(text)
  return { name, privateKey, publicKey: createPublicKey(privateKey) }
}

type NewKey = ReturnType<typeof newKey>

function newKey() {
  const { generateKeyPairSync } = process.getBuiltinModule('node:crypto')
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { publicKey, privateKey, text: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) }
}
