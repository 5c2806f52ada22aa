/** Two certificate authorities: the project's, and one of the servers outside. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Authority, openAuthority } from '../../src/gateway/tls/authority.ts'

export function newAuthority(name: string): Authority {
  const directory = mkdtempSync(join(tmpdir(), 'pen-authority-'))
  const authority = openAuthority(directory, name)
  rmSync(directory, { recursive: true })
  return authority
}
