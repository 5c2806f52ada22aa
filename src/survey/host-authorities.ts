/**
 * Certificate authorities that were added to this machine, as for a company's TLS-intercepting proxy. Programs in a sandbox
 * must trust the host's bundle too: an image does not have the added ones, and Node.js brings its own list.
 */
import { readdirSync } from 'node:fs'
import { authorityBundle } from '../base/authority-bundle.ts'
import type { HostPath } from '../policy/files/path.ts'

/** Where distributions keep added authorities: Debian and Alpine, Fedora, Arch, SUSE. */
const ADDED = [
  '/usr/local/share/ca-certificates',
  '/etc/pki/ca-trust/source/anchors',
  '/etc/ca-certificates/trust-source/anchors',
  '/etc/pki/trust/anchors',
]
const CERTIFICATE = /\.(crt|pem|cer|p11-kit)$/

/** The bundle, a file that only root can write. Undefined when none was added. */
export function hostAuthorities(): HostPath | undefined {
  return ADDED.some(hasCertificate) ? (authorityBundle() as HostPath | undefined) : undefined
}

function hasCertificate(directory: string): boolean {
  try {
    return readdirSync(directory, { recursive: true }).some(name => CERTIFICATE.test(String(name)))
  } catch {
    return false
  }
}
