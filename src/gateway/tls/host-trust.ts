/**
 * The certificate authorities that this machine trusts, with those that its administrator or company added. Only root can
 * write the bundle. Without one, the runtime's own list applies. `NODE_EXTRA_CA_CERTS` adds to either.
 */
import { readFileSync, statSync } from 'node:fs'

/** Debian and Alpine, Fedora, SUSE, and what OpenSSL looks for. */
export const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

const WRITABLE_BY_OTHERS = 0o022

let known: { readonly since: string; readonly text: string | undefined } | undefined

/** Read again when the file changes. Bun caches the parsed certificates by their text. */
export function hostTrust(): string | undefined {
  for (const path of BUNDLES) {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat === undefined || stat.uid !== 0 || (stat.mode & WRITABLE_BY_OTHERS) !== 0 || stat.size === 0)
      continue
    const since = `${path} ${stat.ino} ${stat.mtimeMs}`
    if (known?.since !== since) known = { since, text: withExtra(readFileSync(path, 'utf8')) }
    return known.text
  }
  return undefined
}

/** An explicit list replaces the runtime's, and with it the variable that adds to it. */
function withExtra(bundle: string): string {
  const extra = process.env['NODE_EXTRA_CA_CERTS']
  if (extra === undefined || extra === '') return bundle
  try {
    return `${bundle}\n${readFileSync(extra, 'utf8')}`
  } catch {
    return bundle
  }
}
