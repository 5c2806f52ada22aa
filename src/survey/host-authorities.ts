/**
 * Certificate authorities that somebody added to this machine, as companies do whose proxy opens TLS. The host's bundle then is what
 * programs of a sandbox have to trust, too: an image does not know them, and neither does a Node.js that brings its own list.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs'
import type { HostPath } from '../policy/files/path.ts'

/** Where each family of distributions keeps those that were added: Debian and Alpine, Fedora, Arch, SUSE. */
const ADDED = [
  '/usr/local/share/ca-certificates',
  '/etc/pki/ca-trust/source/anchors',
  '/etc/ca-certificates/trust-source/anchors',
  '/etc/pki/trust/anchors',
]
/** All authorities in one file, the added ones among them. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
]

const CERTIFICATE = /\.(crt|pem|cer|p11-kit)$/

/** The bundle as a file of root's; undefined where nobody has added any. */
export function hostAuthorities(): HostPath | undefined {
  if (!ADDED.some(hasCertificate)) return undefined
  for (const path of BUNDLES) {
    const real = rootsFile(path)
    if (real !== undefined) return real as HostPath
  }
  return undefined
}

function hasCertificate(directory: string): boolean {
  try {
    return readdirSync(directory, { recursive: true }).some(name => CERTIFICATE.test(String(name)))
  } catch {
    return false
  }
}

const WRITABLE_BY_OTHERS = 0o022

/** What others could write is nothing to trust. */
function rootsFile(path: string): string | undefined {
  try {
    const real = realpathSync(path)
    const { uid, mode, size } = statSync(real)
    return uid === 0 && (mode & WRITABLE_BY_OTHERS) === 0 && size > 0 ? real : undefined
  } catch {
    return undefined
  }
}
