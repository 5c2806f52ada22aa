/**
 * The `agent-permissions.json` that `pen init --permissions` writes. Denials alone: whatever else somebody grants, and also where the
 * project may add, it takes away and adds nothing.
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

/** False when something has the name already, whatever it is. */
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
