/**
 * The `agent-permissions.json` that `pen init --permissions` writes. It contains only denials, so it restricts even when the
 * project's document may add grants.
 */
import { lstatSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { printJson } from './json/json.ts'
import { confirmPathStays, ownerOf } from './pen-directory.ts'

export const PERMISSIONS = 'agent-permissions.json'

export const permissionsTemplate = (): string =>
  printJson({
    $schema: './.pen/config.schema.json',
    version: 1,
    files: { deny: ['secrets/', '*.pem', '*.key'], protect: [] },
    network: { deny: [] },
  })

/** False when the name already exists. */
export function writePermissions(workspace: string): boolean {
  const path = `${workspace}/${PERMISSIONS}`
  const there = () => lstatSync(path, { throwIfNoEntry: false })
  const isThere = (): boolean => there() !== undefined
  if (isThere()) return false
  const options = { mode: 0o644, owner: ownerOf(workspace), unless: isThere }
  if (!writeFileAtomically(path, permissionsTemplate(), options)) return false
  confirmPathStays(path, there() ?? { dev: 0, ino: 0 })
  return true
}
