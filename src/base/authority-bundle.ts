/** The file in which a distribution keeps all certificate authorities, with those that an administrator or company added. */
import { realpathSync, statSync } from 'node:fs'

/** Debian and Alpine, Fedora, SUSE, and where OpenSSL looks. */
export const AUTHORITY_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

const WRITABLE_BY_OTHERS = 0o022

/** The real path. A bundle that other users can write is not trusted. */
export function authorityBundle(): string | undefined {
  for (const path of AUTHORITY_BUNDLES)
    try {
      const real = realpathSync(path)
      const { uid, mode, size } = statSync(real)
      if (uid === 0 && (mode & WRITABLE_BY_OTHERS) === 0 && size > 0) return real
    } catch {
      // The next distribution's path.
    }
  return undefined
}
