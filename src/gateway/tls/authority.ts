/**
 * The certificate authority of one project, and the certificates that it makes for opened hosts. Its key is in pen's
 * state, which no sandbox can read. A program that trusts it trusts the gateway of this project's sandboxes, and nothing
 * else has the key.
 */
import type { KeyObject } from 'node:crypto'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { PenError } from '../../base/error.ts'
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

export class Authority {
  readonly name: string
  /** PEM. */
  readonly certificate: string
  readonly #issuer: { readonly name: string; readonly publicKey: KeyObject; readonly privateKey: KeyObject }
  /** One key for all certificates of this process. */
  readonly #key: { readonly publicKey: KeyObject; readonly text: string }
  readonly #leaves = new Map<Host, { readonly leaf: Leaf; readonly renew: number }>()

  constructor(key: string, certificate: string) {
    const { createPrivateKey, createPublicKey, X509Certificate } = process.getBuiltinModule('node:crypto')
    const privateKey = createPrivateKey(key)
    const { subject } = new X509Certificate(certificate)
    this.certificate = certificate
    this.name = subject.replace(/^CN=/, '')
    this.#issuer = {
      name: this.name,
      publicKey: createPublicKey(privateKey),
      privateKey,
    }
    const own = newKey()
    this.#key = { publicKey: own.publicKey, text: own.text }
  }

  /** Random bytes that only the owner of the key can compute, and always the same for one text. */
  randomFor(text: string): () => number {
    const { createHmac } = process.getBuiltinModule('node:crypto')
    const key = this.#issuer.privateKey.export({ type: 'pkcs8', format: 'der' })
    let block: Buffer = Buffer.alloc(0)
    let used = 0
    return () => {
      if (used % 32 === 0) block = createHmac('sha256', key).update(`${used} ${text}`).digest()
      return block[used++ % 32] ?? 0
    }
  }

  leafFor(name: Host, now = Date.now()): Leaf {
    const known = this.#leaves.get(name)
    if (known !== undefined && known.renew > now) return known.leaf
    const cert = makeCertificate({
      subject: name,
      key: this.#key.publicKey,
      issuer: this.#issuer,
      from: new Date(now - SLACK_DAYS * DAY_MS),
      to: new Date(now + LEAF_DAYS * DAY_MS),
      host: name,
    })
    const leaf = { key: this.#key.text, cert }
    if (this.#leaves.size >= MOST_LEAVES) this.#leaves.clear()
    this.#leaves.set(name, { leaf, renew: now + (LEAF_DAYS * DAY_MS) / 2 })
    return leaf
  }
}

/** Reads the authority of a project, or makes one. Two starts at the same time may make two: the last one stays. */
export function openAuthority(stateDir: string, sandbox: string, now = Date.now()): Authority {
  const file = `${stateDir}/authority.pem`
  const text = readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })?.toString('latin1')
  const [, key, certificate] =
    /^(-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----\n)(-----BEGIN CERT.*)$/s.exec(text ?? '') ?? []
  if (key !== undefined && certificate !== undefined && lasts(certificate, now))
    return new Authority(key, certificate)
  const made = newKey()
  const name = `pen sandbox ${sandbox}`.slice(0, 64)
  const own = makeCertificate({
    subject: name,
    key: made.publicKey,
    issuer: { name, publicKey: made.publicKey, privateKey: made.privateKey },
    from: new Date(now - SLACK_DAYS * DAY_MS),
    to: new Date(now + AUTHORITY_DAYS * DAY_MS),
    host: undefined,
  })
  writeFileAtomically(file, made.text + own)
  return new Authority(made.text, own)
}

function lasts(certificate: string, now: number): boolean {
  const { X509Certificate } = process.getBuiltinModule('node:crypto')
  try {
    return new Date(new X509Certificate(certificate).validTo).getTime() > now + RENEW_DAYS * DAY_MS
  } catch (cause) {
    throw new PenError('STATE', {
      what: 'the certificate authority of this project is damaged',
      hint: 'remove authority.pem in the sandbox’s state, and start again',
      cause,
    })
  }
}

function newKey() {
  const { generateKeyPairSync } = process.getBuiltinModule('node:crypto')
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { publicKey, privateKey, text: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) }
}
