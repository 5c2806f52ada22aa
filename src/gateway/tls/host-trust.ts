/**
 * The certificate authorities that this machine trusts, with those that its administrator or company added. Only root can
 * write the bundle. Without one, the runtime's own list applies. `NODE_EXTRA_CA_CERTS` adds to either.
 */
import { readFileSync, statSync } from 'node:fs'
import { authorityBundle } from '../../base/authority-bundle.ts'

let known: { readonly since: string; readonly text: string } | undefined

/** Read again when the file changes. Bun caches the parsed certificates by their text. */
export function hostTrust(): string | undefined {
  const path = authorityBundle()
  if (path === undefined) return undefined
  const { ino, mtimeMs } = statSync(path)
  const since = `${path} ${ino} ${mtimeMs}`
  if (known?.since !== since) known = { since, text: withExtra(readFileSync(path, 'utf8')) }
  return known.text
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
