/**
 * Certificate authorities that were added to this machine, as for a company's TLS-intercepting proxy. Programs in a sandbox
 * must trust the host's bundle too: an image does not have the added ones, and Node.js brings its own list.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs'
import type { HostPath } from '../policy/files/path.ts'

/** Where distributions keep added authorities: Debian and Alpine, Fedora, Arch, SUSE. */
const ADDED = [
  '/usr/local/share/ca-certificates',
  '/etc/pki/ca-trust/source/anchors',
  '/etc/ca-certificates/trust-source/anchors',
  '/etc/pki/trust/anchors',
]
/** All authorities in one file, including the added ones. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
]

const CERTIFICATE = /\.(crt|pem|cer|p11-kit)$/

/** The bundle, a file that only root can write. Undefined when none was added. */
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

/** A bundle that other users can write is not trusted. */
function rootsFile(path: string): string | undefined {
  try {
    const real = realpathSync(path)
    const { uid, mode, size } = statSync(real)
    return uid === 0 && (mode & WRITABLE_BY_OTHERS) === 0 && size > 0 ? real : undefined
  } catch {
    return undefined
  }
}
