/** The configuration that `pen init` writes: the default profile, and the package sources that the project's files call for. */
import { lstatSync } from 'node:fs'
import type { GroupName } from '../policy/network/groups.ts'
import { printJson } from './json/json.ts'

export interface Initial {
  readonly text: string
  /** Which groups it names, and the file that each was named for. */
  readonly groups: readonly { readonly name: GroupName; readonly because: string }[]
}

/**
 * A file in the project can ask for no more than these: each stands for the package sources in the user's own settings. The
 * sets of hosts to which one can push are for a person to name.
 */
const CALLED_FOR: Readonly<Record<string, GroupName>> = {
  'package.json': 'npm',
  'pyproject.toml': 'pypi',
  'requirements.txt': 'pypi',
  'setup.py': 'pypi',
  'setup.cfg': 'pypi',
  Pipfile: 'pypi',
  'Cargo.toml': 'crates',
  'go.mod': 'go',
}

export function initialConfig(workspace: string): Initial {
  const found = new Map<GroupName, string>()
  for (const [file, name] of Object.entries(CALLED_FOR))
    if (!found.has(name) && lstatSync(`${workspace}/${file}`, { throwIfNoEntry: false })?.isFile() === true)
      found.set(name, file)
  const network = found.size === 0 ? {} : { network: { groups: [...found.keys()] } }
  return {
    text: printJson({ $schema: './config.schema.json', version: 1, profile: 'coding', ...network }),
    groups: [...found].map(([name, because]) => ({ name, because })),
  }
}
